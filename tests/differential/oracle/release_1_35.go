// Copyright: (c) 2026, The kubenode.memory authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

//go:build kube_1_35 && !kube_1_37

package main

import (
	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

type (
	machineInfo      = cadvisor.MachineInfo
	machineNode      = cadvisor.Node
	machineHugePages = cadvisor.HugePagesInfo
)

func newMemoryManager(policy string, info *machineInfo, allocatable v1.ResourceList, reserved []kubeletconfig.MemoryReservation, directory string, store topologymanager.Store) (memorymanager.Manager, error) {
	return memorymanager.NewManager(logger, policy, info, allocatable, reserved, directory, store)
}

func newTopologyManager(info *machineInfo, policy, scope string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(info.Topology, policy, scope, nil)
}

func newFixedStore() topologymanager.Store { return topologymanager.NewFakeManager() }

func addHintProvider(topology topologymanager.Manager, memory memorymanager.Manager) {
	topology.AddHintProvider(logger, memory)
}

func admit(topology topologymanager.Manager, pod *v1.Pod) error {
	return refusal(topology.Admit(&lifecycle.PodAdmitAttributes{Pod: pod}))
}

func addContainer(memory memorymanager.Manager, pod *v1.Pod, container *v1.Container, id string) {
	memory.AddContainer(logger, pod, container, id)
}

func removeContainer(memory memorymanager.Manager, id string) error {
	return memory.RemoveContainer(logger, id)
}
