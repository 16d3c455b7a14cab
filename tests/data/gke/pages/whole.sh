#!/usr/bin/env bash
# A cluster with two A3 Mega nodes from a reservation, in networks of its own.
set -euo pipefail

export PROJECT=${PROJECT:-training-1}
ZONE="us-central1-a" REGION="us-central1"
PREFIX=mega
POOL_FLAGS="--zone=${ZONE} --cluster=${PREFIX} --project=${PROJECT}"
NUMBERS='1 2 3 4 5 6 7 8'

gcloud config set project "$PROJECT"
gcloud auth list --quiet

gcloud compute networks create ${PREFIX}-main --subnet-mode=custom --mtu=8244
gcloud compute networks subnets create ${PREFIX}-main-sub --network=${PREFIX}-main --region="$REGION" \
  --range=10.0.0.0/20 --secondary-range=pods=10.4.0.0/14,services=10.0.32.0/20
for N in $NUMBERS; do
  gcloud compute networks create "$PREFIX-net-$N" --subnet-mode=custom --mtu=8244  # one for each NIC
  gcloud compute networks subnets create "$PREFIX-sub-$N" --network="$PREFIX-net-$N" --region=$REGION \
    --range=192.168.$((N + 10)).0/24
  gcloud compute firewall-rules create "$PREFIX-internal-$N" --network="$PREFIX-net-$N" --action=ALLOW \
    --rules=tcp:0-65535,udp:0-65535,icmp --source-ranges=192.168.$((N + 10)).0/24
done

gcloud container clusters create $PREFIX --zone $ZONE --cluster-version=1.31.14-gke.1243000 \
  --release-channel=regular --enable-dataplane-v2 --enable-ip-alias --enable-multi-networking \
  --network=${PREFIX}-main --subnetwork=${PREFIX}-main-sub \
  --cluster-secondary-range-name=pods --services-secondary-range-name=services \
  --num-nodes=1 --machine-type=e2-standard-8 --labels=team=ml \
  --workload-pool=${PROJECT}.svc.id.goog --enable-shielded-nodes

gcloud beta container node-pools create gpus $POOL_FLAGS \
  --machine-type=a3-megagpu-8g --num-nodes=2 \
  --accelerator=type=nvidia-h100-mega-80gb,count=8,gpu-driver-version=latest \
  --additional-node-network=network=${PREFIX}-net-1,subnetwork=${PREFIX}-sub-1 \
  --additional-node-network=network=${PREFIX}-net-2,subnetwork=${PREFIX}-sub-2 \
  --additional-node-network=network=${PREFIX}-net-3,subnetwork=${PREFIX}-sub-3 \
  --additional-node-network=network=${PREFIX}-net-4,subnetwork=${PREFIX}-sub-4 \
  --additional-node-network=network=${PREFIX}-net-5,subnetwork=${PREFIX}-sub-5 \
  --additional-node-network=network=${PREFIX}-net-6,subnetwork=${PREFIX}-sub-6 \
  --additional-node-network=network=${PREFIX}-net-7,subnetwork=${PREFIX}-sub-7 \
  --additional-node-network=network=${PREFIX}-net-8,subnetwork=${PREFIX}-sub-8 \
  --enable-gvnic --reservation-affinity=specific --reservation=projects/owner-1/reservations/big/reservationBlocks/b-1 \
  --placement-policy=near --host-maintenance-interval=PERIODIC \
  --node-labels=pool=gpus --node-taints=dedicated=training:NoSchedule --disk-type=pd-ssd --disk-size=300GB \
  --max-surge-upgrade=0 --max-unavailable-upgrade=1 --labels=team=ml
