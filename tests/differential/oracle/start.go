// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// Stages at which a start ends.
const (
	stageNewManager = "new_manager"
	stageLoad       = "load"
	stageStart      = "start"
	stageOK         = "ok"
	stagePanic      = "panic"
)

// verdict of one start; directory names in Error read STATEDIR.
type verdict struct {
	OK    bool   `json:"ok"`
	Stage string `json:"stage"`
	Error string `json:"error,omitempty"`
}

type startRequest struct {
	node
	fileContent
	// Repeat is how often the start is tried, each time in a fresh directory. The order of Go's maps differs each time.
	Repeat int  `json:"repeat"`
	Logs   bool `json:"logs"`
}

type startAnswer struct {
	verdict
	// AllVerdicts is set if the repetitions did not agree; the answer's other fields are those of the first.
	AllVerdicts       []verdict         `json:"all_verdicts_seen,omitempty"`
	MachineStateAfter state.NUMANodeMap `json:"machine_state_after,omitempty"`
	FileAfter         fileContent       `json:"file_after"`
	Logs              []string          `json:"logs,omitempty"`
}

// idleRuntime and idleStatus stand for parts of the kubelet that a start does not ask.
type idleRuntime struct{}

func (idleRuntime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

type idleStatus struct{}

func (idleStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

// readySources says that the kubelet has heard of all its pods.
type readySources struct{}

func (readySources) AddSource(string) {}
func (readySources) AllReady() bool   { return true }

func startContext() context.Context {
	return klog.NewContext(context.Background(), logger)
}

// startManager makes and starts the memory manager as the kubelet's container manager does.
func startManager(n node, directory string, store topologymanager.Store, pods memorymanager.ActivePodsFunc) (memorymanager.Manager, string, error) {
	allocatable, err := resourceList(n.NodeAllocatableReservation)
	if err != nil {
		return nil, stageNewManager, err
	}
	reserved, err := n.reservedMemory()
	if err != nil {
		return nil, stageNewManager, err
	}
	manager, err := newMemoryManager(n.Policy, n.machineInfo(), allocatable, reserved, directory, store)
	if err != nil {
		return nil, stageNewManager, err
	}
	err = manager.Start(startContext(), pods, readySources{}, idleStatus{}, idleRuntime{}, containermap.NewContainerMap())
	return manager, startStage(err), err
}

func startStage(err error) string {
	switch {
	case err == nil:
		return stageOK
	case strings.HasPrefix(err.Error(), "could not restore state from checkpoint: "),
		strings.HasPrefix(err.Error(), "failed to initialize checkpoint manager: "):
		return stageLoad
	default:
		return stageStart
	}
}

func noPods() []*v1.Pod { return nil }

// judge runs one start; a panic of the kubelet's code is a verdict too.
func judge(n node, directory string) (found verdict, after state.NUMANodeMap) {
	defer func() {
		if reason := recover(); reason != nil {
			found, after = verdict{Stage: stagePanic, Error: fmt.Sprint(reason)}, nil
		}
	}()
	manager, stage, err := startManager(n, directory, newFixedStore(), noPods)
	if err != nil {
		return verdict{Stage: stage, Error: strings.ReplaceAll(err.Error(), directory, "STATEDIR")}, nil
	}
	return verdict{OK: true, Stage: stage}, manager.State().GetMachineState()
}

func startOnce(n node, content []byte) (startAnswer, error) {
	directory, err := stateDirectory(content)
	if err != nil {
		return startAnswer{}, err
	}
	defer os.RemoveAll(directory)
	found, after := judge(n, directory)
	file, err := readStateFile(directory)
	return startAnswer{verdict: found, MachineStateAfter: after, FileAfter: file}, err
}

// startRepeatedly returns the first answer and the other verdicts that were seen, in the order of their text.
func startRepeatedly(n node, content []byte, times int) (startAnswer, error) {
	first, err := startOnce(n, content)
	if err != nil {
		return first, err
	}
	seen := []verdict{first.verdict}
	for range times - 1 {
		next, err := startOnce(n, content)
		if err != nil {
			return first, err
		}
		if !slices.Contains(seen, next.verdict) {
			seen = append(seen, next.verdict)
		}
	}
	if len(seen) > 1 {
		slices.SortFunc(seen, func(a, b verdict) int { return strings.Compare(a.Stage+a.Error, b.Stage+b.Error) })
		first.AllVerdicts = seen
	}
	return first, nil
}

func answerStart(raw json.RawMessage) (any, error) {
	var asked startRequest
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
	var answer startAnswer
	lines := recording(asked.Logs, func() { answer, err = startRepeatedly(asked.node, content, asked.Repeat) })
	answer.Logs = lines
	return answer, err
}
