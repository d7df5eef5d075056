package coverage

import (
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// condition is a part of an expression, with those that it is made of.
type condition struct {
	*engine.Part
	parts []*condition
}

// conditionOf makes a tree of the parts of an expression, each of which stands before
// those that it is made of; nil for none.
func conditionOf(parts []engine.Part) *condition {
	var way []*condition // from the whole to the last part
	for i := range parts {
		part := &condition{Part: &parts[i]}
		way = way[:min(part.Depth, len(way))]
		if len(way) > 0 {
			over := way[len(way)-1]
			over.parts = append(over.parts, part)
		}
		way = append(way, part)
	}
	if len(way) == 0 {
		return nil
	}
	return way[0]
}

// branches goes through what can come out of the parts. isBool says that c is one that
// is true or false.
func (c *condition) branches(isBool bool, each func(pos source.Pos, outcome, missing string)) {
	switch c.Operator {
	case "&&", "||", "!":
		for _, part := range c.parts {
			part.branches(true, each)
		}
	case "? :":
		if len(c.parts) != 3 {
			return
		}
		c.parts[0].branches(true, each)
		for _, arm := range c.parts[1:] {
			if !isBool || arm.literal() {
				each(arm.Pos, taken, fmt.Sprintf("%s is never chosen", arm.Text))
			}
			arm.branches(isBool, each)
		}
	default:
		if isBool && !c.literal() {
			each(c.Pos, "true", c.Text+" is never true")
			each(c.Pos, "false", c.Text+" is never false")
		}
	}
}

// taken is the outcome of one of the two values of a conditional.
const taken = "taken"

// literal reports whether c is true or false as it is written.
func (c *condition) literal() bool { return c.Text == "true" || c.Text == "false" }

// reached goes through what came out of the parts that counted: those that stand after
// one which settles the whole do not.
func (c *condition) reached(each func(pos source.Pos, outcome string)) {
	switch c.Operator {
	case "&&", "||":
		settles := map[string]string{"&&": "false", "||": "true"}[c.Operator]
		for _, part := range c.parts {
			part.reached(each)
			if part.Value == settles {
				return
			}
		}
	case "!":
		for _, part := range c.parts {
			part.reached(each)
		}
	case "? :":
		if len(c.parts) != 3 {
			return
		}
		c.parts[0].reached(each)
		switch c.parts[0].Value {
		case "true":
			c.parts[1].chosen(each)
		case "false":
			c.parts[2].chosen(each)
		}
	default:
		each(c.Pos, c.Value)
	}
}

func (c *condition) chosen(each func(pos source.Pos, outcome string)) {
	each(c.Pos, taken)
	c.reached(each)
}

func (w *watcher) addBranches(e *engine.Expression) {
	if c := conditionOf(e.Parts); c != nil {
		c.branches(e.Role == "match", func(pos source.Pos, outcome, missing string) {
			w.c.add(w.texts, pos, w.infos[e.Policy].Name, Branch, outcome, missing)
		})
	}
}

func (w *watcher) reachBranches(e *engine.Expression) {
	if c := conditionOf(e.Parts); c != nil {
		c.reached(func(pos source.Pos, outcome string) {
			w.c.reach(w.texts, pos, w.infos[e.Policy].Name, Branch, outcome)
		})
	}
}
