"""A cluster of Kubernetes Engine and its node pools, as far as rules read them."""

from __future__ import annotations

from interlace.gke.observed.api import Api, Switch


class DriverInstallation(Api, frozen=True, kw_only=True):
    gpu_driver_version: str = ""


class GpuSharing(Api, frozen=True, kw_only=True):
    gpu_sharing_strategy: str = ""
    max_shared_clients_per_gpu: int = 0


class Accelerator(Api, frozen=True, kw_only=True):
    accelerator_type: str = ""
    accelerator_count: int = 0
    gpu_driver_installation_config: DriverInstallation = DriverInstallation()
    gpu_partition_size: str = ""
    gpu_sharing_config: GpuSharing = GpuSharing()
    max_time_shared_clients_per_gpu: int = 0


class ReservationAffinity(Api, frozen=True, kw_only=True):
    consume_reservation_type: str = ""
    key: str = ""
    values: tuple[str, ...] = ()


class HostMaintenance(Api, frozen=True, kw_only=True):
    maintenance_interval: str = ""


class LocalSsds(Api, frozen=True, kw_only=True):
    local_ssd_count: int = 0


class NodeConfig(Api, frozen=True, kw_only=True):
    machine_type: str = ""
    disk_size_gb: int = 0
    disk_type: str = ""
    image_type: str = ""
    service_account: str = ""
    oauth_scopes: tuple[str, ...] | None = None
    gvnic: Switch = Switch()
    fast_socket: Switch = Switch()
    accelerators: tuple[Accelerator, ...] = ()
    reservation_affinity: ReservationAffinity = ReservationAffinity()
    host_maintenance_policy: HostMaintenance = HostMaintenance()
    labels: dict[str, str] = {}
    resource_labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    spot: bool = False
    preemptible: bool = False
    flex_start: bool = False
    local_ssd_count: int = 0
    ephemeral_storage_local_ssd_config: LocalSsds = LocalSsds()
    local_nvme_ssd_block_config: LocalSsds = LocalSsds()


class NodeNetwork(Api, frozen=True, kw_only=True):
    """One NIC beside the first."""

    network: str = ""
    subnetwork: str = ""


class PoolNetworkConfig(Api, frozen=True, kw_only=True):
    additional_node_network_configs: tuple[NodeNetwork, ...] = ()
    accelerator_network_profile: str = ""
    pod_ipv4_cidr_block: str = ""
    enable_private_nodes: bool = False


class Management(Api, frozen=True, kw_only=True):
    auto_repair: bool = False
    auto_upgrade: bool = False


class UpgradeSettings(Api, frozen=True, kw_only=True):
    max_surge: int = 0
    max_unavailable: int = 0
    strategy: str = ""


class Autoscaling(Api, frozen=True, kw_only=True):
    enabled: bool = False
    min_node_count: int = 0
    max_node_count: int = 0
    total_min_node_count: int = 0
    total_max_node_count: int = 0


class PlacementUse(Api, frozen=True, kw_only=True):
    type: str = ""
    policy_name: str = ""


class StatusCondition(Api, frozen=True, kw_only=True):
    code: str = ""
    canonical_code: str = ""
    message: str = ""


class NodePool(Api, frozen=True, kw_only=True):
    name: str = ""
    status: str = ""
    status_message: str = ""
    conditions: tuple[StatusCondition, ...] = ()
    version: str = ""
    initial_node_count: int = 0
    locations: tuple[str, ...] = ()
    config: NodeConfig = NodeConfig()
    network_config: PoolNetworkConfig = PoolNetworkConfig()
    management: Management = Management()
    upgrade_settings: UpgradeSettings = UpgradeSettings()
    autoscaling: Autoscaling = Autoscaling()
    placement_policy: PlacementUse = PlacementUse()


class ReleaseChannel(Api, frozen=True, kw_only=True):
    channel: str = ""


class ClusterNetworkConfig(Api, frozen=True, kw_only=True):
    network: str = ""
    subnetwork: str = ""
    datapath_provider: str = ""
    enable_multi_networking: bool = False
    default_enable_private_nodes: bool = False


class IpAllocation(Api, frozen=True, kw_only=True):
    use_ip_aliases: bool = False
    cluster_ipv4_cidr_block: str = ""
    services_ipv4_cidr_block: str = ""
    cluster_secondary_range_name: str = ""
    services_secondary_range_name: str = ""


class ExclusionOptions(Api, frozen=True, kw_only=True):
    scope: str = ""


class Exclusion(Api, frozen=True, kw_only=True):
    """``end_time`` empty: to the end of support."""

    start_time: str = ""
    end_time: str = ""
    maintenance_exclusion_options: ExclusionOptions = ExclusionOptions()


class MaintenanceWindow(Api, frozen=True, kw_only=True):
    maintenance_exclusions: dict[str, Exclusion] = {}


class MaintenancePolicy(Api, frozen=True, kw_only=True):
    window: MaintenanceWindow = MaintenanceWindow()


class PrivateCluster(Api, frozen=True, kw_only=True):
    enable_private_nodes: bool = False


class WorkloadIdentity(Api, frozen=True, kw_only=True):
    workload_pool: str = ""


class Cluster(Api, frozen=True, kw_only=True):
    name: str = ""
    status: str = ""
    status_message: str = ""
    conditions: tuple[StatusCondition, ...] = ()
    location: str = ""
    locations: tuple[str, ...] = ()
    network: str = ""
    subnetwork: str = ""
    initial_cluster_version: str = ""
    current_master_version: str = ""
    release_channel: ReleaseChannel = ReleaseChannel()
    network_config: ClusterNetworkConfig = ClusterNetworkConfig()
    ip_allocation_policy: IpAllocation = IpAllocation()
    maintenance_policy: MaintenancePolicy = MaintenancePolicy()
    private_cluster_config: PrivateCluster = PrivateCluster()
    workload_identity_config: WorkloadIdentity = WorkloadIdentity()
    autopilot: Switch = Switch()
    node_pools: tuple[NodePool, ...] = ()
