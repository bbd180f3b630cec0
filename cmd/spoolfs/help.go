package main

// Help is shown by kong.
func (*mountCommand) Help() string {
	return `Flags may also stand in a configuration file, or in the environment as shown:
flag > environment > file > default. SIGTERM ends it: no new files are
taken, open ones may finish, the broker gets what it takes, and what is left
is in the store.

Examples:

    spoolfs mount --store=/tmp/store --broker=stdout: --exchange=x /tmp/spool
    spoolfs mount --store=/var/lib/spoolfs --broker=amqps://user@host/vhost \
        --password-file=/etc/spoolfs/password --exchange=xs_user /run/spool
    spoolfs mount --config=/etc/spoolfs/spoolfs.yaml
`
}

// Help is shown by kong.
func (*checkCommand) Help() string {
	return `Takes the flags of "spoolfs mount", and reads the same file and environment.

Examples:

    spoolfs check
    spoolfs check --config=/etc/spoolfs/spoolfs.yaml --json
    spoolfs check --print      # every setting, with where it comes from
`
}

// Help is shown by kong.
func (*janitorCommand) Help() string {
	return `The settings are those of the daemon, and are read from the same files and
variables; see spoolfs.yaml(5). A store belongs to one process: beside a
daemon the janitor needs one of its own.

Examples:

    spoolfs janitor --store=/var/lib/spoolfs-janitor --exchange=xs_user \
        --broker=amqps://user@host/vhost --password-file=/etc/spoolfs/password \
        /shared/retry
    spoolfs janitor --config=/etc/spoolfs/janitor.yaml
    spoolfs janitor --once --limit=10m /shared/retry || echo "not all is sent"
`
}

// Help is shown by kong.
func (*drainCommand) Help() string {
	return `The settings are those of the daemon, and are read from the same files and
variables; see spoolfs.yaml(5). With --to no broker is needed.

Examples:

    spoolfs drain                       # the store of the daemon, which is stopped
    spoolfs drain --store=/mnt/recovered/spoolfs --exchange=xs_user \
        --broker=amqps://user@host/vhost --password-file=/etc/spoolfs/password
    spoolfs drain --store=/mnt/recovered/spoolfs --to=/run/spool
`
}
