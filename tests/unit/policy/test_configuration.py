# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effective configuration; the expectations were answers of kubelet 1.37.2 to the same files and flags."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import (
    API_VERSION,
    DEFAULT_EVICTION_HARD,
    KIND,
    ConfigurationInputs,
    Document,
    EffectiveConfiguration,
    effective_configuration,
    merge_patch,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.decode import Number, go_float, go_quote
from ansible_collections.kubenode.memory.plugins.module_utils._policy.flags import split_command_line
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release

HEADER = {"apiVersion": API_VERSION, "kind": KIND}
K137 = Release(1, 37, 2)
ONE_NODE = [{"numaNode": 0, "limits": {"memory": "1.5Gi"}}]


def document(path: str = "/etc/c.yaml", **fields: t.Any) -> Document:
    return Document(path, {**HEADER, **fields})


def effective(
    main: t.Optional[Document] = None,
    dropins: t.Optional[t.Sequence[Document]] = None,
    flags: t.Sequence[str] = (),
    release: t.Optional[Release] = K137,
    candidate: t.Optional[Document] = None,
) -> EffectiveConfiguration:
    inputs = ConfigurationInputs(main, None if dropins is None else tuple(dropins), tuple(flags))
    return effective_configuration(inputs, release, candidate)


def kubelet_errors(result: EffectiveConfiguration) -> t.List[t.Optional[str]]:
    return [finding.kubelet_error for finding in result.findings if finding.stops_start]


def limits(result: EffectiveConfiguration) -> t.List[t.Tuple[int, t.Mapping[str, str]]]:
    return [(entry.numa_node, entry.limits) for entry in result.configuration.reserved_memory]


def test_nothing_given_has_no_eviction_threshold() -> None:
    configuration = effective().configuration
    assert configuration.memory_manager_policy == "None"
    assert configuration.eviction_hard is None
    assert configuration.enforce_node_allocatable == ("pods",)
    assert configuration.sources["memoryManagerPolicy"] == "default"


def test_file_without_eviction_hard_gets_the_defaults() -> None:
    configuration = effective(document()).configuration
    assert configuration.eviction_hard == DEFAULT_EVICTION_HARD
    assert configuration.sources["evictionHard.memory.available"] == "default"


def test_explicit_empty_eviction_hard_stays_empty() -> None:
    assert effective(document(evictionHard={})).configuration.eviction_hard == {}


@pytest.mark.parametrize(
    ("dropin", "expected"),
    [
        ({"memory.available": "200Mi"}, {**DEFAULT_EVICTION_HARD, "memory.available": "200Mi"}),
        ({"memory.available": None}, {k: v for k, v in DEFAULT_EVICTION_HARD.items() if k != "memory.available"}),
        ({}, DEFAULT_EVICTION_HARD),
        (None, None),
    ],
)
def test_drop_in_merges_into_the_default_thresholds(dropin: t.Any, expected: t.Any) -> None:
    result = effective(document(), [document("/d/1.conf", evictionHard=dropin)])
    assert result.configuration.eviction_hard == expected
    assert kubelet_errors(result) == []


def test_default_thresholds_are_merged_at_load_time_only() -> None:
    partly = {"nodefs.available": "1%"}
    main = document(evictionHard=partly, mergeDefaultEvictionSettings=True)
    assert effective(main).configuration.eviction_hard == {**DEFAULT_EVICTION_HARD, **partly}
    flag = effective(main, flags=["--eviction-hard=nodefs.available<2%"])
    assert flag.configuration.eviction_hard == {"nodefs.available": "2%"}
    late = effective(document(evictionHard=partly), [document("/d/1.conf", mergeDefaultEvictionSettings=True)])
    assert late.configuration.eviction_hard == partly
    assert effective(main, release=Release(1, 32)).configuration.eviction_hard == partly


def test_lists_in_drop_ins_replace_and_maps_merge() -> None:
    main = document(reservedMemory=ONE_NODE, systemReserved={"memory": "1Gi"}, featureGates={"A": True})
    second = [{"numaNode": 1, "limits": {"memory": "2Gi"}}]
    result = effective(
        main, [document("/d/1.conf", reservedMemory=second, systemReserved={"cpu": "1"}, featureGates={"B": False})]
    )
    assert limits(result) == [(1, {"memory": "2Gi"})]
    assert result.configuration.system_reserved == {"memory": "1Gi", "cpu": "1"}
    assert result.configuration.feature_gates == {"A": True, "B": False}
    sources = result.configuration.sources
    assert sources["systemReserved.memory"] == "/etc/c.yaml"
    assert sources["featureGates.B"] == sources["reservedMemory"] == "/d/1.conf"


def test_only_the_base_of_a_merge_is_serialised_again() -> None:
    main = effective(document(reservedMemory=ONE_NODE), [])
    assert (limits(main), main.configuration.reserialised) == ([(0, {"memory": "1536Mi"})], True)
    dropin = effective(document(), [document("/d/1.conf", reservedMemory=ONE_NODE)])
    assert (limits(dropin), dropin.configuration.reserialised) == ([(0, {"memory": "1.5Gi"})], False)
    alone = effective(document(reservedMemory=ONE_NODE))
    assert (limits(alone), alone.configuration.reserialised) == ([(0, {"memory": "1.5Gi"})], False)


def test_candidate_is_merged_last_without_serialising() -> None:
    candidate = Document("candidate", {"memoryManagerPolicy": "Static"})
    result = effective(document(reservedMemory=ONE_NODE), candidate=candidate)
    assert result.configuration.memory_manager_policy == "Static"
    assert result.configuration.sources["memoryManagerPolicy"] == "candidate"
    assert limits(result) == [(0, {"memory": "1.5Gi"})]
    assert kubelet_errors(effective(document(), candidate=Document("candidate", [1]))) != []


def test_case_matters_in_the_main_file_but_not_after_a_merge() -> None:
    main = effective(document(MemoryManagerPolicy="Static"), [])
    assert main.configuration.memory_manager_policy == "None"
    assert [(f.code, f.field) for f in main.findings] == [("unknown_field", "MemoryManagerPolicy")]
    upper = effective(document(), [document("/d/1.conf", MemoryManagerPolicy="Static")])
    assert upper.configuration.memory_manager_policy == "None"  # the base's own spelling is decoded later
    lower = effective(document(), [document("/d/1.conf", memorymanagerpolicy="Static")])
    assert lower.configuration.memory_manager_policy == "Static"


def test_two_spellings_of_a_list_are_decoded_into_each_other() -> None:
    main = document(reservedMemory=[{"numaNode": 1, "limits": {"hugepages-2Mi": "4Mi"}}])
    result = effective(main, [document("/d/1.conf", RESERVEDMEMORY=ONE_NODE)])
    assert limits(result) == [(1, {"memory": "1.5Gi", "hugepages-2Mi": "4Mi"})]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"featureGates": {"A": "x"}}, "string into Go struct field KubeletConfiguration.featureGates of type bool"),
        ({"featureGates": []}, "array into Go struct field KubeletConfiguration.featureGates of type map[string]bool"),
        ({"kubeReserved": {"cpu": 1}}, "number into Go struct field KubeletConfiguration.kubeReserved of type string"),
        ({"maxPods": "110"}, "string into Go struct field KubeletConfiguration.maxPods of type int32"),
        ({"maxPods": 1 << 31}, "number 2147483648 into Go struct field KubeletConfiguration.maxPods of type int32"),
        ({"syncFrequency": 10}, "number into Go struct field KubeletConfiguration.syncFrequency of type string"),
        (
            {"reservedMemory": [{"numaNode": "0"}]},
            "string into Go struct field MemoryReservation.reservedMemory.numaNode of type int32",
        ),
        (
            {"reservedMemory": [{"numaNode": Number("1.5")}]},
            "number 1.5 into Go struct field MemoryReservation.reservedMemory.numaNode of type int32",
        ),
        (
            {"reservedMemory": {}},
            "object into Go struct field KubeletConfiguration.reservedMemory of type []v1beta1.MemoryReservation",
        ),
        (
            {"authentication": "x"},
            "string into Go struct field KubeletConfiguration.authentication of type v1beta1.KubeletAuthentication",
        ),
    ],
)
def test_wrong_types_stop_the_kubelet(fields: t.Mapping[str, t.Any], error: str) -> None:
    assert kubelet_errors(effective(document(**fields))) == ["failed to decode: json: cannot unmarshal " + error]
    merged = effective(document(), [document("/d/1.conf", **fields)])
    prefix = "failed to unmarshal merged JSON into kubelet configuration: json: cannot unmarshal "
    assert kubelet_errors(merged) == [prefix + error]
    assert [finding.path for finding in merged.findings] == ["/d/1.conf"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("10", 'time: missing unit in duration "10"'),
        ("10x", 'time: unknown unit "x" in duration "10x"'),
        ("abc", 'time: invalid duration "abc"'),
        ("1h30m", None),
        ("-1.5s", None),
        ("0", None),
    ],
)
def test_durations(value: str, error: t.Optional[str]) -> None:
    expected = [] if error is None else ["failed to decode: " + error]
    assert kubelet_errors(effective(document(syncFrequency=value))) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(1073741824, "1073741824"), (Number("1.5"), "1.5"), (1e9, "1000000000"), (" 1Gi ", "1Gi"), (None, "0")],
)
def test_quantities_may_be_numbers(value: t.Any, text: str) -> None:
    main = document(reservedMemory=[{"numaNode": 0, "limits": {"memory": value}}])
    assert limits(effective(main)) == [(0, {"memory": text})]


@pytest.mark.parametrize("value", ["1GB", "", True, [], {}])
def test_bad_quantities(value: t.Any) -> None:
    main = document(reservedMemory=[{"numaNode": 0, "limits": {"memory": value}}])
    (error,) = kubelet_errors(effective(main))
    assert error is not None
    assert "quantit" in error


def test_null_means_absent_or_zero() -> None:
    main = document(reservedMemory=[None, {"numaNode": None}], featureGates={"A": None}, evictionHard=None)
    result = effective(main)
    assert kubelet_errors(result) == []
    assert limits(result) == [(0, {}), (0, {})]
    assert result.configuration.feature_gates == {"A": False}
    assert result.configuration.eviction_hard == DEFAULT_EVICTION_HARD


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, "failed to decode: Object 'Kind' is missing"),
        ({"kind": KIND}, "failed to decode: Object 'apiVersion' is missing"),
        ({"apiVersion": "v1", "kind": "Pod"}, 'failed to decode: no kind "Pod" is registered for version "v1"'),
        ([], "json: cannot unmarshal array into Go value of type struct"),
        ({"apiVersion": 1, "kind": KIND}, "json: cannot unmarshal number into Go struct field"),
    ],
)
def test_main_file_without_the_right_header(value: t.Any, error: str) -> None:
    (text,) = kubelet_errors(effective(Document("/etc/c.yaml", value)))
    assert text is not None
    assert error in text


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({}, "Object 'Kind' is missing"),
        ({"kind": KIND}, "unknown apiVersion/kind: /, Kind=KubeletConfiguration"),
        ({"apiVersion": "v1", "kind": "Pod"}, "unknown apiVersion/kind: /v1, Kind=Pod"),
        ("x", "cannot unmarshal string"),
    ],
)
def test_drop_in_without_the_right_header(value: t.Any, error: str) -> None:
    (text,) = kubelet_errors(effective(document(), [Document("/d/1.conf", value)]))
    assert text is not None
    assert text.startswith("failed to load kubelet dropin file, path: /d/1.conf, ")
    assert error in text


def test_duplicate_keys_warn_in_the_main_file_and_stop_in_a_drop_in() -> None:
    twice = Document("/etc/c.yaml", dict(HEADER), duplicate_keys=('line 4: key "maxPods" already set in map',))
    assert [(f.code, f.severity) for f in effective(twice).findings] == [("duplicate_field", "warning")]
    (text,) = kubelet_errors(effective(document(), [twice]))
    assert text is not None
    assert 'key "maxPods" already set in map' in text


def test_option_that_this_release_ignores_is_a_fact() -> None:
    options = {"memory-drift-tolerance": "auto"}
    result = effective(document(memoryManagerPolicyOptions=options))
    assert [(field.name, field.source) for field in result.unknown_fields] == [
        ("memoryManagerPolicyOptions", "/etc/c.yaml")
    ]
    assert result.configuration.memory_manager_policy_options == options
    assert result.findings == ()
    dropin = effective(document(), [document("/d/1.conf", memoryManagerPolicyOptions="x")])
    assert [field.source for field in dropin.unknown_fields] == ["/d/1.conf"]
    assert kubelet_errors(dropin) == []
    newer = effective(document(memoryManagerPolicyOptions=options), release=Release(1, 38))
    assert newer.unknown_fields == ()


@pytest.mark.parametrize(("release", "expected"), [((1, 30), None), ((1, 34), False), ((1, 35), True), (None, True)])
def test_default_of_fail_cgroup_v1(release: t.Optional[t.Tuple[int, int]], expected: t.Optional[bool]) -> None:
    known = None if release is None else Release(*release)
    assert effective(document(), release=known).configuration.fail_cgroup_v1 is expected


def test_flags_replace_maps_and_lists_but_feature_gates_are_united() -> None:
    main = document(
        reservedMemory=ONE_NODE,
        systemReserved={"memory": "1Gi"},
        featureGates={"A": True, "B": True},
        memoryManagerPolicy="None",
    )
    flags = [
        "--memory_manager_policy=Static",
        "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi",
        "--reserved-memory",
        "2:memory=1Gi",
        "--system-reserved=cpu=1",
        "--feature-gates=B=false,C=true",
        "--kernel-memcg-notification",
        "-v=2",
    ]
    result = effective(main, [], flags)
    configuration = result.configuration
    assert result.findings == ()
    assert configuration.memory_manager_policy == "Static"
    assert [entry.numa_node for entry in configuration.reserved_memory] == [0, 1, 2]
    assert configuration.reserialised is False
    assert configuration.system_reserved == {"cpu": "1"}
    assert configuration.feature_gates == {"A": True, "B": False, "C": True}
    assert configuration.kernel_memcg_notification is True
    assert configuration.sources["featureGates.A"] == "/etc/c.yaml"
    assert configuration.sources["featureGates.B"] == "flag --feature-gates"
    assert "systemReserved.memory" not in configuration.sources


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        (
            "--reserved-memory=0",
            "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got 0",
        ),
        ("--reserved-memory=x:memory=1", "failed to convert the NUMA node ID, expected integer, got x"),
        ("--reserved-memory=0:memory", "the reserved limit has incorrect value, expected type=quantity, got memory"),
        ("--reserved-memory=0:cpu=1", 'memory type conversion error, unknown type: "cpu"'),
        ("--reserved-memory=0:memory=1GB", "failed to parse the quantity: 1GB"),
        ("--eviction-hard=memory.available", "malformed pair, expect string<string"),
        ("--system-reserved=cpu", "malformed pair, expect string=string"),
        ("--feature-gates=A=maybe", 'invalid value of A: maybe, err: strconv.ParseBool: parsing "maybe"'),
        ("--fail-cgroupv1=yes", 'strconv.ParseBool: parsing "yes": invalid syntax'),
    ],
)
def test_flags_that_the_kubelet_refuses(flag: str, error: str) -> None:
    (text,) = kubelet_errors(effective(flags=[flag]))
    name, _equals, value = flag.partition("=")
    assert text is not None
    assert text.startswith(f'failed to parse kubelet flag: invalid argument "{value}" for "{name}" flag: ')
    assert error in text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["stray"], "unknown command stray"),
        (["--kernel-memcg-notification", "false"], "unknown command false"),
        (["--", "x"], "unknown command x"),
        (["--=x"], "failed to parse kubelet flag: bad flag syntax: --=x"),
        (["--config"], "failed to parse kubelet flag: flag needs an argument: --config"),
        (["--unknown", "value", "--config=a"], None),
        (["--unknown", "--config=a"], None),
        (["--config", "--strange-name"], None),
    ],
)
def test_splitting_the_command_line(arguments: t.Sequence[str], problem: t.Optional[str]) -> None:
    assert split_command_line(arguments).problem == problem


def test_empty_flags() -> None:
    main = document(reservedMemory=ONE_NODE, evictionHard={"memory.available": "1Mi"})
    result = effective(main, flags=["--reserved-memory=", "--eviction-hard=", "--memory-manager-policy="])
    assert limits(result) == [(0, {"memory": "1.5Gi"})]
    assert result.configuration.eviction_hard == {}
    assert result.configuration.memory_manager_policy == ""


@pytest.mark.parametrize(
    ("value", "text"), [(1e21, "1e+21"), (1.5, "1.5"), (1e-7, "1e-7"), (1e20, "100000000000000000000"), (0.0, "0")]
)
def test_floats_as_go_writes_them(value: float, text: str) -> None:
    assert go_float(value) == text


def test_go_quote() -> None:
    assert go_quote('a"b\\\n\x01é\u200b') == '"a\\"b\\\\\\n\\x01é\\u200b"'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.builds(Number, st.just("1.5")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
field_names = st.sampled_from(
    ["memoryManagerPolicy", "reservedMemory", "evictionHard", "featureGates", "enforceNodeAllocatable", "apiVersion"]
) | st.text(max_size=6)
documents = st.builds(
    Document,
    st.just("/x"),
    json_values | st.dictionaries(field_names, json_values, max_size=5).map(lambda fields: {**HEADER, **fields}),
)


@given(
    st.none() | documents,
    st.none() | st.lists(documents, max_size=2),
    st.lists(st.sampled_from(["--reserved-memory", "--feature-gates=", "-"]) | st.text(max_size=12), max_size=4),
    st.none() | documents,
)
def test_any_input_gives_a_configuration(
    main: t.Optional[Document],
    dropins: t.Optional[t.Sequence[Document]],
    flags: t.Sequence[str],
    candidate: t.Optional[Document],
) -> None:
    result = effective(main, dropins, flags, candidate=candidate)
    assert isinstance(result.configuration.memory_manager_policy, str)
    assert all(
        isinstance(text, str) for entry in result.configuration.reserved_memory for text in entry.limits.values()
    )


@given(st.dictionaries(st.text(max_size=2), json_values, max_size=3))
def test_merging_an_empty_patch_changes_nothing(base: t.Mapping[str, t.Any]) -> None:
    assert repr(merge_patch(base, {})) == repr(dict(base))
