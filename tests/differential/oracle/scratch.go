// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"
)

const stateFile = "memory_manager_state"

// scratch is the directory of this process; the state directories of the requests are made in it.
var scratch string

var scratchCount int

// prepareScratch prefers a memory file system: a state file is synced to its disk at each write.
func prepareScratch() (func(), error) {
	base := "/dev/shm"
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		base = ""
	}
	made, err := os.MkdirTemp(base, "kubenode-oracle-")
	if err != nil {
		made, err = os.MkdirTemp("", "kubenode-oracle-")
	}
	scratch = made
	return func() { os.RemoveAll(made) }, err
}

// stateDirectory makes a fresh kubelet root directory, with the state file if content is not nil.
func stateDirectory(content []byte) (string, error) {
	scratchCount++
	directory := filepath.Join(scratch, strconv.Itoa(scratchCount))
	if err := os.Mkdir(directory, 0o755); err != nil {
		return "", err
	}
	if content == nil {
		return directory, nil
	}
	return directory, os.WriteFile(filepath.Join(directory, stateFile), content, 0o600)
}

// fileContent is a state file in a request or an answer: text, base64 where it is not UTF-8, or neither for no file.
type fileContent struct {
	Text   *string `json:"file_text"`
	Base64 *string `json:"file_base64,omitempty"`
}

func (f fileContent) bytes() ([]byte, error) {
	if f.Base64 != nil {
		return base64.StdEncoding.DecodeString(*f.Base64)
	}
	if f.Text == nil {
		return nil, nil
	}
	return []byte(*f.Text), nil
}

func readStateFile(directory string) (fileContent, error) {
	content, err := os.ReadFile(filepath.Join(directory, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fileContent{}, nil
	}
	if err != nil {
		return fileContent{}, err
	}
	if utf8.Valid(content) {
		text := string(content)
		return fileContent{Text: &text}, nil
	}
	encoded := base64.StdEncoding.EncodeToString(content)
	return fileContent{Base64: &encoded}, nil
}
