// Package fs is the mount: it turns what processes write into files of the
// mount into messages of the queue. It is the only importer of go-fuse.
//
// # Guarantees
//
//   - F1: when close(2) or fsync(2) has returned 0, all that the file holds is
//     on disk (G1). A FLUSH with new bytes stages them and answers when they are
//     there. Proven by TestMount_KilledDaemonKeepsClosedFiles of package
//     integration, with kill -9.
//   - F2: what one open file description wrote is one file, whoever inherited
//     it, and enters the queue at its RELEASE, all or nothing (G2).
//     Proven by TestMount_Writers of package integration.
//   - F3: each open of a name for writing is a file of its own. Two processes
//     that write "the same" name cannot harm each other.
//     Proven by TestFS_OpensAreSeparate.
//   - F4: the directory lists only what is open now (G7).
//     Proven by TestMount_Writers.
//   - F5: another user's name does not exist (G12).
//     Proven by TestFS_NamesArePrivate.
//   - F6: a handler never returns EINTR, and never waits for anything but the
//     disk of the store (G5). Proven by TestMount_WritersDoNotWaitForBroker of
//     package integration.
//
// # Stage and commit
//
// Shells, dd and touch send a FLUSH while a file is still empty, a subshell
// sends one between two commands, and a background child writes after the close
// of its parent has returned. So a FLUSH is not the end of a file. It makes the
// file durable, as a stage of the queue, and is the ticket that decides its
// place; the RELEASE, which comes once for an open file description, makes it
// ready. A FLUSH costs in proportion to the bytes that are new.
//
// # Node ids and handles
//
// They are numbers of our own making and not positions in tables, and a file
// handle is the unique id of the request that opened it, so that a process can
// take over a connection from another. Nodes live as long as a file is open on
// them; no lookup counts are kept, since a FORGET may never come.
//
// # Locks
//
// FS.mu guards the tables and is never held during I/O. handle.mu guards the
// bytes of one file and is held while they are staged, so that only requests on
// the same file wait for the disk. FS.mu may be taken under handle.mu, not the
// other way round.
package fs
