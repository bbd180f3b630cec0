package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// hideEnvironment overwrites the passwords in the URLs of our variables where
// /proc/PID/environ shows them, to root and to the same user. What the program
// itself reads, and hands on to processes that it starts, is the runtime's copy.
// From the start of the process to here they can be seen, so that a file is the
// better place.
func hideEnvironment() error {
	start, end, err := environmentBlock()
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	block := make([]byte, end-start)
	if _, err := memory.ReadAt(block, start); err != nil {
		return err
	}
	if !hideIn(block) {
		return nil
	}
	_, err = memory.WriteAt(block, start)
	return err
}

// hideIn overwrites the passwords in a block of variables, with a zero byte
// behind each, and reports whether there were any.
func hideIn(block []byte) (found bool) {
	at := 0
	for variable := range bytes.SplitSeq(block, []byte{0}) {
		text := string(variable)
		if strings.HasPrefix(text, "SPOOLFS_") {
			for _, word := range strings.Fields(text) {
				from, to := passwordIn(word)
				first := at + strings.Index(text, word)
				for i := first + from; i < first+to; i++ {
					block[i], found = 'x', true
				}
			}
		}
		at += len(variable) + 1
	}
	return found
}

// environmentBlock is where the kernel has put the variables: see proc(5), fields
// 50 and 51 of stat.
func environmentBlock() (start, end int64, err error) {
	f, err := os.Open("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, 0, err
	}
	// The name of the program, field 2, is in brackets and may hold anything.
	_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 49 {
		return 0, 0, errors.New("/proc/self/stat does not say where the environment is")
	}
	if _, err := fmt.Sscan(fields[47]+" "+fields[48], &start, &end); err != nil || end < start {
		return 0, 0, fmt.Errorf("environment from %s to %s", fields[47], fields[48])
	}
	return start, end, nil
}

// hidingPasswords is a text for people in which the passwords in URLs are not
// shown: what somebody has put where it does not belong is quoted by an error.
func hidingPasswords(text string) string {
	return urlLike.ReplaceAllStringFunc(text, func(word string) string {
		from, to := passwordIn(word)
		if from == to {
			return word
		}
		return word[:from] + "xxx" + word[to:]
	})
}

var urlLike = regexp.MustCompile(`\S+://\S+`)
