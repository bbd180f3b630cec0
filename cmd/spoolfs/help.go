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
	return `Examples:

    spoolfs janitor --store=/var/lib/spoolfs-janitor --exchange=xs_user \
        --broker=amqps://user@host/vhost --password-file=/etc/spoolfs/password \
        /shared/retry
`
}

// Help is shown by kong.
func (*drainCommand) Help() string {
	return `Examples:

    spoolfs drain --store=/mnt/recovered/spoolfs --exchange=xs_user \
        --broker=amqps://user@host/vhost --password-file=/etc/spoolfs/password
`
}
