# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The fields of KubeletConfiguration v1beta1 and their Go types, as of Kubernetes 1.37 (semantics 6.1)."""

from __future__ import annotations

import typing as t

from .decode import ANY, BOOL, DURATION, FLOAT64, INT32, INT64, QUANTITY, STRING, GoType, ListOf, MapOf, Struct

STRINGS = ListOf(STRING, "[]string")
STRING_MAP = MapOf(STRING, "map[string]string")

MEMORY_RESERVATION = Struct(
    "MemoryReservation",
    {"numaNode": INT32, "limits": MapOf(QUANTITY, "v1.ResourceList")},
)

_TYPED: t.Mapping[GoType, str] = {
    BOOL: """
        enableServer rotateCertificates serverTLSBootstrap enableDebuggingHandlers enableContentionProfiling
        cgroupsPerQOS singleProcessOOMKill runOnce cpuCFSQuota serializeImagePulls mergeDefaultEvictionSettings
        enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains failSwapOn kernelMemcgNotification
        enableSystemLogHandler enableSystemLogQuery enableProfilingHandler enableDebugFlagsHandler seccompDefault
        registerNode localStorageCapacityIsolation failCgroupV1""",
    STRING: """
        staticPodPath podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion
        imagePullCredentialsVerificationPolicy healthzBindAddress clusterDomain kubeletCgroups systemCgroups cgroupRoot
        cgroupDriver cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy topologyManagerScope hairpinMode podCIDR
        resolvConf contentType containerLogMaxSize configMapAndSecretChangeDetectionStrategy reservedSystemCPUs
        showHiddenMetricsForVersion systemReservedCgroup kubeReservedCgroup volumePluginDir providerID
        memoryReservationPolicy containerRuntimeEndpoint imageServiceEndpoint""",
    INT32: """
        port readOnlyPort registryPullQPS registryBurst eventRecordQPS eventBurst healthzPort oomScoreAdj
        nodeLeaseDurationSeconds imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods nodeStatusMaxImages
        kubeAPIQPS kubeAPIBurst maxParallelImagePulls evictionMaxPodGracePeriod podsPerCore iptablesMasqueradeBit
        iptablesDropBit containerLogMaxFiles containerLogMaxWorkers""",
    INT64: "podPidsLimit maxOpenFiles",
    FLOAT64: "memoryThrottlingFactor",
    DURATION: """
        syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout nodeStatusUpdateFrequency
        nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge volumeStatsAggPeriod cpuManagerReconcilePeriod
        runtimeRequestTimeout cpuCFSQuotaPeriod evictionPressureTransitionPeriod containerLogMonitorInterval
        shutdownGracePeriod shutdownGracePeriodCriticalPods""",
    STRINGS: """
        tlsCipherSuites preloadedImagesVerificationAllowlist clusterDNS enforceNodeAllocatable allowedUnsafeSysctls""",
    STRING_MAP: """
        cpuManagerPolicyOptions memoryManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionHard
        evictionSoft evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved defaultPodSysctls""",
}

_NESTED: t.Mapping[str, GoType] = {
    "staticPodURLHeader": MapOf(STRINGS, "map[string][]string"),
    "tlsCurvePreferences": ListOf(INT32, "[]int32"),
    "featureGates": MapOf(BOOL, "map[string]bool"),
    "reservedMemory": ListOf(MEMORY_RESERVATION, "[]v1beta1.MemoryReservation"),
    "memorySwap": Struct("MemorySwapConfiguration", {"swapBehavior": STRING}),
    "crashLoopBackOff": Struct("CrashLoopBackOffConfig", {"maxContainerRestartPeriod": DURATION}),
    "userNamespaces": Struct("UserNamespaces", {"idsPerPod": INT64}),
    "tracing": Struct("TracingConfiguration", {"endpoint": STRING, "samplingRatePerMillion": INT32}, "v1"),
    "apiVersion": ANY,
    "kind": ANY,
    "logging": Struct(
        "LoggingConfiguration",
        {"format": STRING, "flushFrequency": ANY, "verbosity": ANY, "vmodule": ANY, "options": ANY},
        "v1",
    ),
    "registerWithTaints": ListOf(
        Struct("Taint", {"key": STRING, "value": STRING, "effect": STRING, "timeAdded": ANY}, "v1"), "[]v1.Taint"
    ),
    "shutdownGracePeriodByPodPriority": ListOf(
        Struct("ShutdownGracePeriodByPodPriority", {"priority": INT32, "shutdownGracePeriodSeconds": INT64}),
        "[]v1beta1.ShutdownGracePeriodByPodPriority",
    ),
    "authentication": Struct(
        "KubeletAuthentication",
        {
            "x509": Struct("KubeletX509Authentication", {"clientCAFile": STRING}),
            "webhook": Struct("KubeletWebhookAuthentication", {"enabled": BOOL, "cacheTTL": DURATION}),
            "anonymous": Struct("KubeletAnonymousAuthentication", {"enabled": BOOL}),
        },
    ),
    "authorization": Struct(
        "KubeletAuthorization",
        {
            "mode": STRING,
            "webhook": Struct(
                "KubeletWebhookAuthorization", {"cacheAuthorizedTTL": DURATION, "cacheUnauthorizedTTL": DURATION}
            ),
        },
    ),
}


def _all_fields() -> t.Dict[str, GoType]:
    fields = {name: go_type for go_type, names in _TYPED.items() for name in names.split()}
    fields.update(_NESTED)
    return fields


KUBELET_CONFIGURATION = Struct("KubeletConfiguration", _all_fields())

SINCE: t.Mapping[str, t.Tuple[int, int]] = {
    "memoryManagerPolicyOptions": (1, 38),
    "mergeDefaultEvictionSettings": (1, 33),
    "failCgroupV1": (1, 31),
}
"""First release of fields that matter here and are younger than 1.21."""
