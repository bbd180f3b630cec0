// Package fs is the mount: it turns what processes write into files of the
// mount into messages of the queue. It is the only importer of go-fuse.
//
// # Guarantees
//
//   - F1: when close(2) or fsync(2) has returned 0, all that the file holds is
//     on disk (G1). A FLUSH with new bytes stages them and answers when they are
//     there. Proven by TestMount_KilledDaemonKeepsClosedFiles of package
//     integration, with kill -9.
//
//   - F2: what one open file description wrote is one file, whoever inherited
//     it, and enters the queue at its RELEASE, all or nothing (G2).
//     Proven by TestMount_Writers of package integration.
//
//   - F3: each open of an ordinary name for writing is a file of its own. Two
//     processes that write "the same" name cannot harm each other.
//     Proven by TestFS_OpensAreSeparate.
//
//   - F4: the directory lists only what is open or held now, and the directories
//     of users (G7). Proven by TestMount_Writers.
//
//   - F5: another user's name does not exist (G12). Who may do what is decided in
//     access.go alone. Proven by TestFS_NamesArePrivate and TestDir_Modes.
//
//   - F6: a handler never returns EINTR, and never waits for anything but the
//     disk of the store, nor for that without end (G5). A bug costs one request.
//     Proven by TestMount_WritersDoNotWaitForBroker of package integration,
//     TestFS_StoreDoesNotAnswer and TestMount_Panic.
//
//   - F7: a file of a line format that stays open is committed in instalments of
//     whole lines; its messages are published once, whatever happens.
//     Proven by TestInstalment_Linger, TestInstalment_BySize and
//     TestInstalment_AfterRestart.
//
//   - F8: a held name is one real file, durable at each close and fsync, and
//     published, all or nothing, when it is renamed to an ordinary name.
//     Proven by TestHeld_IsARealFile, TestHeld_CloseIsDurable and
//     TestHeld_RenamedWhileOpen.
//
//   - F9: after its close a file can still be used by path for a second, by the
//     process that wrote it and by no other. Proven by TestGrace_IsForTheWriter.
//
//   - F10: directories of users stay until they are removed, across restarts.
//     Proven by TestDir_Tree and TestDir_SurvivesRestart.
//
//   - F11: what is not the whole of what its writer had to say is set aside as a
//     partial file and not published: a torn last line, a file that is a message
//     and whose writer was killed, a held file that nobody renames.
//     Proven by TestFS_BadLines, TestFS_KilledWriter and TestHeld_Abandoned.
//
//   - F12: memory is bounded, for all and for each user.
//     Proven by TestUsage_UserShare.
//
//   - F13: a message can be read, removed and let go again as a file of .status,
//     by root and a group and by nobody else. A listing starts at once, takes
//     memory for a page, and holds no lock.
//     Proven by TestStatusTree_Users, TestStatusTree_Redrive and
//     TestStatusTree_ListMany of package integration.
//
//   - F14: a file of .status has its true size, and shows one moment for as long
//     as it is open. Proven by TestFS_StatusSnapshot,
//     TestStatusTree_MessageTriedAgain and TestStatusTree_OneMoment; across the
//     death of a process by TestStatusTree_ReadAcrossTakeOver.
//
//   - F15: another process goes on where one has died (G10): files that are open
//     stay open with all that was written to them, and a request that was not
//     answered is carried out once, though it may come again.
//     Proven by TestKill, with kill -9, by TestReplay_CutAnywhere, and by
//     TestFS_Model, in which processes die. What makes no sense, or belongs to
//     another store, is refused. Proven by TestTakeOver_Damaged and
//     TestTakeOver_OtherStore.
//
//   - F16: a route is a directory of the root with a queue, a format and limits of
//     its own. Files in it, and in directories of users below it, go its way,
//     whatever comes in between: a rename, a take-over, other routes that come and
//     go. Proven by TestRoute_Directory, TestRoute_GoesOn and TestRoute_Removed.
//
// # Stage and commit
//
// Shells, dd and touch send a FLUSH while a file is still empty, a subshell
// sends one between two commands, and a background child writes after the close
// of its parent has returned. So a FLUSH is not the end of a file. It makes the
// file durable, as a stage of the queue, and is the ticket that decides its
// place; the RELEASE, which comes once for an open file description, makes it
// ready. A FLUSH costs in proportion to the bytes that are new; only in a format
// in which the file is the message, the message is stored anew.
//
// # Names
//
// A name is a node as long as there is something behind it: a handle, a held
// file, or the grace second of a process. What a name means depends on who asks:
//
//	                         its user's other   the process    other
//	the file is              processes          that wrote it  users
//	open, or held            exists             exists         –
//	flushed, RELEASE to come –                  exists         –
//	closed, for a second     –                  exists         –
//
// A flush is taken for a close, unless the process that opened the file is seen in
// /proc to have another descriptor of it, and for closedTime; then somebody else
// must have one, and the name exists again. A program that has written a name gets
// EEXIST if it creates it with O_EXCL within the second.
//
// A name that is held (isHeld) leads to one file. When it is renamed to an
// ordinary name, the node stays and the file becomes an ordinary one, which is
// committed when nobody has it open for writing any more. A file in which there
// is no message at all is refused with EBADMSG, and stays held; one that holds
// messages is published, and what is bad in it set aside. An ordinary file that is
// renamed to a held name stays an ordinary file.
//
// Held files and directories are stages of the queue, with their path as name; of
// a directory, "//" and its mode and group follow. So they are there again after a
// restart. The mode and times of held files are not.
//
// # Routes
//
// The directory of a route is the operator's: it stands in the listing of the
// root, and nobody can move, remove or change it (EBUSY, EPERM), nor rename
// something from one route into another (EXDEV, so that mv copies), since a file is
// a stage of its route from its first FLUSH on. It hides the directory of a user
// that has its name, as a mount would, and takes no name that users could block. Paths of
// files are told from the directory of the route on.
//
// A route that is taken out of the configuration has no directory any more. Files
// that are open in it are finished, and what is held is set aside in time.
//
// # Node ids and handles
//
// They are numbers of our own making and not positions in tables, and a file
// handle is the unique id of the request that opened it, so that a process can
// take over a connection from another; those of a route's directories follow from
// the number that it has in the store. No lookup counts are kept, since a FORGET
// may never come.
//
// The ids of the status tree say themselves what they stand for, see statusID:
// there is no table of them, and a million messages that the kernel knows cost
// nothing here.
//
// # Serving
//
// The connection to the kernel stands behind an interface (connection.go), since
// it belongs to whoever mounted it and outlives us, and since the part of go-fuse
// that takes one request at a time, its ProtocolServer, may change. It is fed with
// the saved INIT, and refuses a connection that it would have negotiated
// otherwise (TestServer_Handshake).
//
// Requests are read into slots of a shared memory (package shm), which show who
// looks at it what is in hand and since when. Their buffers are resident: a
// process that is killed while the kernel copies a request into a page that is
// not there leaves the writer with EIO. Requests that wait for the disk hold up no
// others (TestServer_WaitingHoldsUpNobody). A stop answers what is in hand
// (TestServer_Stop).
//
// # Take-over
//
// What is open or held is kept in the shared memory as well (keep.go): a record
// for each node, handle, directory and file, and the bytes that are not staged. A
// record is written when the lock that guards it is given up, so that what happens
// under one lock is one change for the next process, together with the outcome of
// the request (replay.go). The bytes of a file have no other place.
//
// The next process reads the records, joins the stages that the queue hands back
// to the files that are open or held, and brings both together where the last one
// died between them (takeover.go): the store is right about what was committed,
// and a file whose stage is not what its bytes say is staged anew, under the same
// message ids. Then it has the kernel send again what was not answered, or finds
// that in the slots, and reads on. What dies with a process: that a record stood
// already in an instalment of its file that was committed long ago, and counters.
//
// # Locks
//
// FS.mu guards the tables and is never held during I/O, /proc apart. file.mu
// guards the bytes of one file and is held while they are staged, so that only
// requests on the same file wait for the disk. FS.mu may be taken under file.mu,
// not the other way round; usage.mu is taken last.
// statusTree.mu, statusListing.mu and recent.mu are taken under no other, and
// statusListing.mu alone is held while the store is read. The lock of the table of
// the shared memory is taken last.
package fs
