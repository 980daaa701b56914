// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// recorder holds the kubelet's messages of one request, if that request wants them.
type recorder struct {
	enabled bool
	lines   []string
}

var logs = &recorder{}

// logger is what the kubelet's packages are given.
var logger = klog.New(logr.Discard().GetSink())

func (r *recorder) write(prefix, arguments string) {
	if r.enabled {
		r.lines = append(r.lines, arguments)
	}
}

// captureLogs makes every logger of the kubelet's packages, contextual or global, end in the recorder.
func captureLogs() {
	logger = funcr.New(logs.write, funcr.Options{Verbosity: 0})
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
}

// recording runs do with the recorder on or off, and returns what was logged meanwhile.
func recording(wanted bool, do func()) []string {
	logs.enabled, logs.lines = wanted, nil
	do()
	logs.enabled = false
	return logs.lines
}
