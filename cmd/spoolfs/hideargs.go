package main

import (
	"strings"
	"unsafe"
)

// hidePasswords returns a copy of the arguments, and overwrites the passwords in
// the URLs of the originals: these are the memory that ps shows of a process.
// From the start of the process to here it does show them, so that a file is the
// better place.
func hidePasswords(args []string) []string {
	kept := make([]string, len(args))
	for i, arg := range args {
		kept[i] = strings.Clone(arg)
		for _, word := range strings.Fields(arg) {
			from, to := passwordIn(word)
			start := strings.Index(arg, word)
			if from < to {
				overwrite(arg[start+from : start+to])
			}
		}
	}
	return kept
}

// passwordIn is the place of a password in a word like --broker=amqp://u:p@h. It
// must find it in what is no proper URL, too, so it takes all from the first
// colon of what is behind the slashes to the last at sign.
func passwordIn(word string) (from, to int) {
	scheme := strings.Index(word, "://")
	if scheme < 0 {
		return 0, 0
	}
	authority := scheme + len("://")
	to = strings.LastIndexByte(word, '@')
	from = authority + strings.IndexByte(word[authority:], ':') + 1
	if to < from || from == authority {
		return 0, 0
	}
	return from, to
}

// overwrite changes a string in place. Only what came with the process may be
// treated like that.
func overwrite(s string) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for i := range b {
		b[i] = 'x'
	}
}
