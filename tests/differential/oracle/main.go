// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// The oracle answers what the kubelet's own memory manager does.
//
// It reads JSON from standard input, one request or one array of requests a line, and writes one line of answers
// for each line of requests, in the same order. README.md describes the requests.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// request is what all kinds of requests share; the rest is decoded by the kind's handler.
type request struct {
	Type string `json:"type"`
}

type failure struct {
	OracleError string `json:"oracle_error"`
}

// handlers by request type; a request without a type is a start.
var handlers = map[string]func(json.RawMessage) (any, error){
	"":        answerStart,
	"start":   answerStart,
	"load":    answerLoad,
	"history": answerHistory,
	"gates":   answerGates,
}

func answer(raw json.RawMessage) any {
	var head request
	if err := json.Unmarshal(raw, &head); err != nil {
		return failure{err.Error()}
	}
	handler, known := handlers[head.Type]
	if !known {
		return failure{fmt.Sprintf("unknown request type %q", head.Type)}
	}
	result, err := handler(raw)
	if err != nil {
		return failure{err.Error()}
	}
	return result
}

func answerLine(line []byte) (any, error) {
	if !bytes.HasPrefix(line, []byte("[")) {
		return answer(line), nil
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil {
		return nil, err
	}
	answers := make([]any, 0, len(batch))
	for _, raw := range batch {
		answers = append(answers, answer(raw))
	}
	return answers, nil
}

func serve(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, readErr := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			result, err := answerLine(line)
			if err != nil {
				return err
			}
			if err := encoder.Encode(result); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

func run() error {
	signal.Ignore(syscall.SIGPIPE) // a client that goes away is an error of a write, after which the scratch is removed
	captureLogs()
	cleanUp, err := prepareScratch()
	if err != nil {
		return err
	}
	defer cleanUp()
	return serve(os.Stdin, os.Stdout)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}
