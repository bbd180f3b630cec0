package main

import "context"

// scenario is a comparison.
type scenario struct {
	name, about string
	run         func(context.Context, *bench) error
}

var scenarios = []scenario{
	{"close", "durable closes, by the number of writers", closes},
	{"end", "from the writing to the broker's confirm", endToEnd},
	{"process", "a process for each message", processes},
	{"outage", "a long backlog, and its end", outage},
	{"scale", "many nodes that lose one broker, simulated", scale},
}

func names() []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}

// messageSize is the size of a message in bytes, that of a usual record.
const messageSize = 420

// inTurns has contestants take turns, each time another one first, so that a
// machine whose speed drifts does not favour one.
func inTurns(ctx context.Context, rounds, contestants int, run func(round, contestant int) error) error {
	for round := range rounds {
		for i := range contestants {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := run(round, (i+round)%contestants); err != nil {
				return err
			}
		}
	}
	return nil
}
