"""Watch traffic out of the API server's metrics."""

from testbed.metrics import watch_bytes

EXPOSITION = b"""\
# TYPE apiserver_watch_events_sizes histogram
apiserver_watch_events_sizes_bucket{group="",resource="pods",version="v1",le="1024"} 3
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 4096
apiserver_watch_events_sizes_count{group="",resource="pods",version="v1"} 4
apiserver_watch_events_sizes_sum{group="resource.k8s.io",resource="resourceclaims",version="v1"} 1.5e+06
apiserver_watch_events_sizes_sum{group="resource.k8s.io",resource="resourceclaims",version="v1beta1"} 24
apiserver_watch_events_total{group="",resource="pods",version="v1"} 4
"""


def test_bytes_are_summed_by_resource_over_its_versions() -> None:
    assert watch_bytes(EXPOSITION) == {"pods": 4096, "resourceclaims.resource.k8s.io": 1500024}


def test_without_watches_there_is_nothing() -> None:
    assert watch_bytes(b"go_goroutines 7\n") == {}
