package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// junitSuite is what Jenkins and GitLab read of a test report.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"` // seconds
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Time    string        `xml:"time,attr"` // seconds
	Failure *junitFailure `xml:"failure"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// add adds c, whose failure is text; "" for one that passed.
func (s *junitSuite) add(c junitCase, text string) {
	s.Tests++
	if text != "" {
		s.Failures++
		message, _, _ := strings.Cut(text, "\n")
		c.Failure = &junitFailure{printable(message), printable(text)}
	}
	c.Out = printable(c.Out)
	s.Cases = append(s.Cases, c)
}

// printable leaves out what cannot stand in XML.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// suiteOf is the report on manifests.
func suiteOf(reports []report) *junitSuite {
	suite := &junitSuite{Name: "mvp test-policy", Time: seconds(0)}
	for _, r := range reports {
		out := r.Verdict() + "\n" + strings.Join(r.Notes(), "\n")
		suite.add(junitCase{Class: "mvp.test-policy", Name: r.name, Time: seconds(0), Out: strings.TrimSpace(out)}, failureText(r))
	}
	return suite
}

// failureText is why r is no success; "" when it is one.
func failureText(r report) string {
	lines := []string{}
	if r.Err != nil {
		lines = append(lines, r.Err.Error())
	}
	for _, v := range r.Violations {
		lines = append(lines, v.String())
	}
	return strings.Join(lines, "\n")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

func printJUnit(w io.Writer, suite *junitSuite) error {
	out, err := xml.MarshalIndent(struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   *junitSuite
	}{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}
