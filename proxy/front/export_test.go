package front

import "time"

// SetPoll makes Run look at the files more often. Before Run.
func (c *Certificates) SetPoll(every time.Duration) { c.every = every }
