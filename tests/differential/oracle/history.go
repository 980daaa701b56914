// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

type container struct {
	Name string `json:"name"`
	// Requests per resource, memory and hugepages-*; empty for a container that lives in its pod's shared pool.
	Requests map[string]string `json:"requests"`
	Sidecar  bool              `json:"sidecar"`
}

// operation is one thing that happens to a kubelet: exactly one of its fields is set.
type operation struct {
	AddPod *struct {
		UID        string            `json:"uid"`
		Init       []container       `json:"init"`
		Containers []container       `json:"containers"`
		PodLevel   map[string]string `json:"pod_level"`
		// Started counts the containers, init containers first, that the runtime then starts one after the other.
		Started int `json:"started"`
	} `json:"add_pod"`
	// RemovePod stops the containers of a pod.
	RemovePod string `json:"remove_pod"`
	// ForgetPod takes a pod out of the active ones without stopping it: its memory is stale until the next admission.
	ForgetPod string `json:"forget_pod"`
	// RemoveContainer names a started container as pod/container.
	RemoveContainer string `json:"remove_container"`
	Restart         bool   `json:"restart"`
}

type historyRequest struct {
	node
	// TopologyPolicy and TopologyScope are the kubelet's: none, best-effort, restricted, single-numa-node; container, pod.
	TopologyPolicy string      `json:"topology_policy"`
	TopologyScope  string      `json:"topology_scope"`
	Operations     []operation `json:"operations"`
}

type historyAnswer struct {
	// Errors are the kubelet's words for each operation, empty where it went well.
	Errors       []string          `json:"errors"`
	MachineState state.NUMANodeMap `json:"machine_state"`
	FileAfter    fileContent       `json:"file_after"`
}

// kubelet is the part of a kubelet that places memory: topology manager, memory manager and their state file.
type kubelet struct {
	node      node
	directory string
	topology  topologymanager.Manager
	memory    memorymanager.Manager
	active    []*v1.Pod
}

func (k *kubelet) activePods() []*v1.Pod { return k.active }

func (k *kubelet) start(policy, scope string) error {
	topology, err := newTopologyManager(k.node.machineInfo(), policy, scope)
	if err != nil {
		return err
	}
	memory, stage, err := startManager(k.node, k.directory, topology, k.activePods)
	if err != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	addHintProvider(topology, memory)
	k.topology, k.memory = topology, memory
	return nil
}

// guaranteed gives a container or pod equal requests and limits, with a CPU so that its class is Guaranteed.
func guaranteed(texts map[string]string) (v1.ResourceRequirements, error) {
	if len(texts) == 0 {
		return v1.ResourceRequirements{}, nil
	}
	list, err := resourceList(texts)
	if err != nil {
		return v1.ResourceRequirements{}, err
	}
	list[v1.ResourceCPU] = *resource.NewQuantity(1, resource.DecimalSI)
	return v1.ResourceRequirements{Requests: list, Limits: list}, nil
}

func podContainers(from []container) ([]v1.Container, error) {
	made := []v1.Container{}
	for _, c := range from {
		resources, err := guaranteed(c.Requests)
		if err != nil {
			return nil, err
		}
		one := v1.Container{Name: c.Name, Resources: resources}
		if c.Sidecar {
			always := v1.ContainerRestartPolicyAlways
			one.RestartPolicy = &always
		}
		made = append(made, one)
	}
	return made, nil
}

func (o operation) pod() (*v1.Pod, error) {
	init, err := podContainers(o.AddPod.Init)
	if err != nil {
		return nil, err
	}
	containers, err := podContainers(o.AddPod.Containers)
	if err != nil {
		return nil, err
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: o.AddPod.UID, Namespace: "default", UID: types.UID(o.AddPod.UID)},
		Spec:       v1.PodSpec{InitContainers: init, Containers: containers},
	}
	if len(o.AddPod.PodLevel) > 0 {
		resources, err := guaranteed(o.AddPod.PodLevel)
		if err != nil {
			return nil, err
		}
		pod.Spec.Resources = &resources
	}
	return pod, nil
}

// refusal is the kubelet's reason not to admit a pod, nil if it does.
func refusal(result lifecycle.PodAdmitResult) error {
	if result.Admit {
		return nil
	}
	return fmt.Errorf("%s: %s", result.Reason, result.Message)
}

func (k *kubelet) addPod(o operation) error {
	pod, err := o.pod()
	if err != nil {
		return err
	}
	k.active = append(k.active, pod)
	if err := admit(k.topology, pod); err != nil {
		k.forgetPod(string(pod.UID))
		return err
	}
	for index, one := range allContainers(pod) {
		if index == o.AddPod.Started {
			break
		}
		addContainer(k.memory, pod, &one, string(pod.UID)+"/"+one.Name)
	}
	return nil
}

func allContainers(pod *v1.Pod) []v1.Container {
	return append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

func (k *kubelet) forgetPod(uid string) *v1.Pod {
	for index, pod := range k.active {
		if string(pod.UID) == uid {
			k.active = append(append([]*v1.Pod{}, k.active[:index]...), k.active[index+1:]...)
			return pod
		}
	}
	return nil
}

func (k *kubelet) removePod(uid string) error {
	pod := k.forgetPod(uid)
	if pod == nil {
		return nil
	}
	for _, one := range allContainers(pod) {
		addContainer(k.memory, pod, &one, uid+"/"+one.Name)
		if err := removeContainer(k.memory, uid+"/"+one.Name); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubelet) do(o operation, asked historyRequest) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	switch {
	case o.AddPod != nil:
		return k.addPod(o)
	case o.RemovePod != "":
		return k.removePod(o.RemovePod)
	case o.ForgetPod != "":
		k.forgetPod(o.ForgetPod)
		return nil
	case o.RemoveContainer != "":
		return removeContainer(k.memory, o.RemoveContainer)
	case o.Restart:
		return k.start(asked.TopologyPolicy, asked.TopologyScope)
	}
	return fmt.Errorf("an operation says nothing to do")
}

func (k *kubelet) answer(asked historyRequest) (historyAnswer, error) {
	answer := historyAnswer{Errors: []string{}}
	for _, o := range asked.Operations {
		text := ""
		if err := k.do(o, asked); err != nil {
			text = err.Error()
		}
		answer.Errors = append(answer.Errors, text)
	}
	answer.MachineState = k.memory.State().GetMachineState()
	var err error
	answer.FileAfter, err = readStateFile(k.directory)
	return answer, err
}

// answerHistory runs a kubelet's life from an empty directory and returns the file that it leaves.
func answerHistory(raw json.RawMessage) (any, error) {
	var asked historyRequest
	if err := json.Unmarshal(raw, &asked); err != nil {
		return nil, err
	}
	if err := setGate(asked.Gate); err != nil {
		return nil, err
	}
	directory, err := stateDirectory(nil)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	k := &kubelet{node: asked.node, directory: directory}
	if err := k.start(asked.TopologyPolicy, asked.TopologyScope); err != nil {
		return nil, err
	}
	return k.answer(asked)
}
