package main

import "github.com/alecthomas/kong"

// cli is the command line.
type cli struct {
	Mount   mountCommand   `cmd:"" group:"run" help:"Mount the spool and publish what is written into it, in the foreground."`
	Unmount unmountCommand `cmd:"" group:"run" help:"Stop the daemon of a spool and take its mount away."`
	Upgrade upgradeCommand `cmd:"" group:"run" help:"Replace a running daemon by the program on disk, without an interruption."`

	Status statusCommand `cmd:"" group:"see" help:"Show the state of a mounted spool."`
	Check  checkCommand  `cmd:"" group:"see" help:"Check configuration, store, mountpoint and broker, and say what to do."`
	Wait   waitCommand   `cmd:"" group:"see" help:"Wait until a spool is empty."`
	Fsck   fsckCommand   `cmd:"" group:"see" help:"Verify a store that nobody serves."`

	Dead    messagesCommand `cmd:"" group:"steer" set:"what=dead letters" help:"Dead letters: what is no message, or can never be sent."`
	Pending messagesCommand `cmd:"" group:"steer" set:"what=messages that wait" help:"Messages that wait to be sent, delayed ones among them."`
	Partial messagesCommand `cmd:"" group:"steer" set:"what=partial files" help:"Partial files: their writer did not get to their end."`
	Pause   pauseCommand    `cmd:"" group:"steer" help:"Publish nothing until resume."`
	Resume  resumeCommand   `cmd:"" group:"steer" help:"End a pause."`
	Retry   retryCommand    `cmd:"" group:"steer" help:"Try the broker, and what is delayed, now."`

	Janitor janitorCommand `cmd:"" group:"move" help:"Empty plain directories, such as those of retry files, and publish what is in them. Mounts nothing."`
	Drain   drainCommand   `cmd:"" group:"move" help:"Publish a store that nobody serves any more, and end when it is empty; or move it to a spool that is mounted."`
	Export  exportCommand  `cmd:"" group:"move" help:"Write the messages of a spool, or of a store that nobody serves, to standard output, for import."`
	Import  importCommand  `cmd:"" group:"move" help:"Take messages that were exported, or Sarracenia's retry files, into a spool or a store."`

	ImportSR3  importSR3Command  `cmd:"" name:"import-sr3" group:"other" help:"Make a configuration of that of a Sarracenia post."`
	Completion completionCommand `cmd:"" group:"other" help:"Print a script that completes commands in a shell."`
	Version    versionCommand    `cmd:"" group:"other" help:"Print the version."`

	Man          manCommand      `cmd:"" hidden:"" help:"Print a manual page."`
	Worker       workerCommand   `cmd:"" hidden:"" help:"Serve a mount; for its keeper."`
	Probe        probeCommand    `cmd:"" hidden:"" help:"See whether a mount answers; the daemon asks that itself."`
	Complete     completeCommand `cmd:"" hidden:"" passthrough:"" help:"Answer the scripts of completion."`
	AccessServer accessCommand   `cmd:"" hidden:"" help:"Answer the requests of other commands."`
}

// commandGroups are the titles of the groups of commands.
func commandGroups() []kong.Group {
	return []kong.Group{
		{Key: "run", Title: "Run it:"}, {Key: "see", Title: "Look at it:"},
		{Key: "steer", Title: "Steer it:"}, {Key: "move", Title: "Bring messages home:"}, {Key: "other", Title: "And:"},
	}
}
