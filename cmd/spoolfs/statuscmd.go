package main

// statusCommand is "spoolfs status".
type statusCommand struct {
	JSON bool `name:"json" env:"-" help:"Print status.json instead of the summary."`

	target
}

// Run is called by kong.
func (c *statusCommand) Run(env *environment) error {
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	name := "summary"
	if c.JSON {
		name = "status.json"
	}
	text, err := cl.read(name)
	if err != nil {
		return err
	}
	if _, err = env.stdout.Write(text); err != nil {
		return withCode(exitIO, err)
	}
	return nil
}
