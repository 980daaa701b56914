from __future__ import annotations

GATES_BY_RELEASE = {
    (1, 37): """\
PodLevelResourceManagers BETA false
PodLevelResources BETA true
"""
}
