#!/bin/sh
# A Slurm of one machine for tests, in a network namespace of its own. Needs root.
#   slurm_box.sh up FOLDER PREFIX     makes it and FOLDER/bin/{sbatch,squeue,scancel}
#   slurm_box.sh down FOLDER PREFIX   removes it
what=$1 folder=$2 space=$3-slurm
export SLURM_CONF=$folder/slurm.conf

in_box() {
  ip netns exec "$space" unshare --uts sh -c 'hostname box1; exec "$@"' sh "$@"
}

configure() {
  cat >"$SLURM_CONF" <<END
ClusterName=box
SlurmctldHost=box1(198.18.9.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
NodeName=box1 NodeAddr=198.18.9.1 CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=box1 Default=YES State=UP
END
  # `ip netns exec` mounts a /sys without cgroups.
  echo CgroupPlugin=cgroup/v1 >"$folder/cgroup.conf"
}

up() {
  set -e
  mkdir -p "$folder/bin" "$folder/state" "$folder/spool"
  ip netns add "$space"
  ip -n "$space" link set lo up
  # Slurm resolves addresses only where there is one beside the loopback's.
  ip -n "$space" link add s0 type veth peer name s1
  ip -n "$space" addr add 198.18.9.1/24 dev s0
  ip -n "$space" link set s0 up
  ip -n "$space" link set s1 up
  configure
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 600 "$folder/munge.key"
  /usr/sbin/munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/seed"
  in_box /usr/sbin/slurmctld >>"$folder/slurmctld.out" 2>&1
  in_box /usr/sbin/slurmd -N box1 >>"$folder/slurmd.out" 2>&1
  for program in sbatch squeue scancel sinfo; do
    cat >"$folder/bin/$program" <<END
#!/bin/sh
export SLURM_CONF=$folder/slurm.conf
exec ip netns exec $space $(command -v "$program") "\$@"
END
    chmod +x "$folder/bin/$program"
  done
  tries=0
  until "$folder/bin/sinfo" -h -o %T 2>/dev/null | grep -qx idle; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ]
    sleep 0.2
  done
}

down() {
  for daemon in slurmd slurmctld munged; do
    [ -f "$folder/$daemon.pid" ] && kill "$(cat "$folder/$daemon.pid")"
  done
  # The daemons write into the folder until they remove these files.
  tries=0
  while ls "$folder"/*.pid >/dev/null 2>&1 && [ "$tries" -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  ip netns del "$space"
}

"$what"
