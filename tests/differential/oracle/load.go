// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
)

// loadRequest asks only whether a release can load a file that was written under a policy.
type loadRequest struct {
	fileContent
	Policy string `json:"policy"`
	Gate   bool   `json:"pod_level_resource_managers_gate"`
}

type loadAnswer struct {
	verdict
	MachineState state.NUMANodeMap                `json:"machine_state,omitempty"`
	Entries      state.ContainerMemoryAssignments `json:"entries,omitempty"`
}

func load(directory, policy string) (found loadAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = loadAnswer{verdict: verdict{Stage: stagePanic, Error: fmt.Sprint(reason)}}
		}
	}()
	loaded, err := state.NewCheckpointState(logger, directory, stateFile, policy)
	if err != nil {
		text := strings.ReplaceAll(err.Error(), directory, "STATEDIR")
		return loadAnswer{verdict: verdict{Stage: stageLoad, Error: text}}
	}
	return loadAnswer{verdict{OK: true, Stage: stageOK}, loaded.GetMachineState(), loaded.GetMemoryAssignments()}
}

func answerLoad(raw json.RawMessage) (any, error) {
	var asked loadRequest
	if err := json.Unmarshal(raw, &asked); err != nil {
		return nil, err
	}
	content, err := asked.bytes()
	if err != nil {
		return nil, err
	}
	if err := setGate(asked.Gate); err != nil {
		return nil, err
	}
	directory, err := stateDirectory(content)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	return load(directory, asked.Policy), nil
}
