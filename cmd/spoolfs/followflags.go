package main

// followFlags say where the messages of a route go on. They are not inherited.
type followFlags struct {
	Then []string `sep:"," placeholder:"ROUTE" help:"Routes of the configuration that get each message once it is confirmed; may be given more than once."`
	Else string   `placeholder:"ROUTE" help:"Route of the configuration that gets what has failed for good, instead of the dead letters (none)."`
}
