#!/bin/sh
# A Slurm of two machines for tests, each in a separate network namespace; slurmctld is on the
# first one. Needs root.
#   slurm_box.sh up FOLDER PREFIX     makes it and FOLDER/bin/{sbatch,squeue,scancel}
#   slurm_box.sh down FOLDER PREFIX   removes it
what=$1 folder=$2 prefix=$3
export SLURM_CONF=$folder/slurm.conf

in_box() { # NUMBER COMMAND...
  ip netns exec "$prefix-slurm$1" unshare --uts sh -c 'hostname "box$1"; shift; exec "$@"' sh "$@"
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
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
NodeName=box1 NodeAddr=198.18.9.1 CPUs=2 RealMemory=1000 State=UNKNOWN
NodeName=box2 NodeAddr=198.18.9.2 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=box1,box2 Default=YES State=UP
END
  # `ip netns exec` mounts a /sys without cgroups.
  echo CgroupPlugin=cgroup/v1 >"$folder/cgroup.conf"
}

up() {
  set -e
  mkdir -p "$folder/bin" "$folder/state" "$folder/spool.box1" "$folder/spool.box2"
  ip netns add "$prefix-slurm1"
  ip netns add "$prefix-slurm2"
  ip link add s1 netns "$prefix-slurm1" type veth peer name s2 netns "$prefix-slurm2"
  for number in 1 2; do
    ip -n "$prefix-slurm$number" addr add "198.18.9.$number/24" dev "s$number"
    ip -n "$prefix-slurm$number" link set "s$number" up
    ip -n "$prefix-slurm$number" link set lo up
  done
  configure
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 600 "$folder/munge.key"
  /usr/sbin/munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/seed"
  in_box 1 /usr/sbin/slurmctld >>"$folder/slurmctld.out" 2>&1
  for number in 1 2; do
    in_box "$number" /usr/sbin/slurmd -N "box$number" >>"$folder/slurmd.out" 2>&1
  done
  for program in sbatch squeue scancel sinfo; do
    cat >"$folder/bin/$program" <<END
#!/bin/sh
export SLURM_CONF=$folder/slurm.conf
exec ip netns exec $prefix-slurm1 $(command -v "$program") "\$@"
END
    chmod +x "$folder/bin/$program"
  done
  tries=0
  until [ "$("$folder/bin/sinfo" -h -N -o %T 2>/dev/null | grep -cx idle)" = 2 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ]
    sleep 0.2
  done
}

down() {
  for daemon in slurmd.box1 slurmd.box2 slurmctld munged; do
    [ -f "$folder/$daemon.pid" ] && kill "$(cat "$folder/$daemon.pid")"
  done
  # The daemons write into the folder until they remove these files.
  tries=0
  while ls "$folder"/*.pid >/dev/null 2>&1 && [ "$tries" -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  ip netns del "$prefix-slurm1"
  ip netns del "$prefix-slurm2"
}

"$what"
