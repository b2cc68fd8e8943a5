#!/bin/sh
# One job, many processes: parts and their merging; which part a process finds that it is; and the recipes of the README,
# as they stand there, run by GNU parallel, by mpirun, and by a Slurm of one node that is started here.
. tests/cli/lib.sh

i=0
while [ $i -lt 23 ]; do
    i=$((i + 1))
    printf '{"custom_id":"n%d","prompt":"Once there was a %d","max_tokens":%d}\n' $i $i $((1 + i % 5))
done >"$tmp/prompts.jsonl"
printf '\n{"promt":"x"}\n{"custom_id":"n3","prompt":"again"}\n' >>"$tmp/prompts.jsonl"
sed -i 's/^$//' "$tmp/prompts.jsonl"
cd "$tmp" || exit 1
run batch --ordered prompts.jsonl
cp out expected
if [ $code -eq 1 ] && [ "$(wc -l <expected)" -eq 25 ]; then ok "one process"; else fail "one process" "exit $code: $(peek err)"; fi

# ---- parts ---------------------------------------------------------------------------------------------------------

# merges NAME: the parts that lie here are, joined, what one process has written; then they are removed.
merges() {
    run batch --merge prompts.jsonl -o answers.jsonl
    if [ $code -eq 1 ] && grep -q '^tgen: 2 of 25 lines could not be answered' err; then
        same "$1" expected answers.jsonl
    else
        fail "$1" "exit $code: $(peek err)"
    fi
    rm -f answers*.jsonl
}
for n in 1 2 4 30; do
    k=0
    while [ $k -lt $n ]; do
        k=$((k + 1))
        run batch --shard $k/$n prompts.jsonl -o answers.jsonl
        [ $code -le 1 ] || fail "--shard $k/$n" "exit $code: $(peek err)"
    done
    if [ $n -eq 1 ]; then
        sort answers.jsonl >sorted_out
        sort expected | cmp -s - sorted_out && ok "--shard 1/1 is the whole job" || fail "--shard 1/1" "$(peek sorted_out)"
        rm answers.jsonl
        continue
    fi
    [ "$n" -ne 4 ] || wc -l answers.*.jsonl >counts
    merges "$n parts"
done
if awk '$2 != "total" && ($1 < 6 || $1 > 7) { exit 1 }' counts; then ok "parts are equal"; else fail "parts are equal" "$(peek counts)"; fi

parts() {
    for k in 1 2; do "$TGEN" batch -q --shard $k/2 prompts.jsonl -o answers.jsonl </dev/null 2>/dev/null; done
}
parts
rm answers.2-of-2.jsonl
refuses "a part is missing" 1 "cannot read answers.2-of-2.jsonl: No such file" batch --merge prompts.jsonl -o answers.jsonl
parts
sed 2d answers.1-of-2.jsonl >shorter
cp shorter answers.1-of-2.jsonl
refuses "a line is missing" 1 "1 of 25 lines have no answer, the first is line" batch --merge prompts.jsonl -o answers.jsonl
printf 'no JSON\nat all\n' >plain.txt
run batch --text -n 1 --shard 1/1 -o plain.jsonl plain.txt
refuses "lines of --text" 1 "2 of 2 lines have no answer, the first is line 1: not a JSON object (--text takes plain lines)" batch --merge plain.txt -o plain.jsonl
succeeds "and with --text" batch --text --merge plain.txt -o plain.jsonl
parts
sed -n 1p answers.1-of-2.jsonl >>answers.2-of-2.jsonl
refuses "a line is doubled" 1 "line 13 of answers.2-of-2.jsonl answers what was answered already" batch --merge prompts.jsonl -o answers.jsonl
rm answers.2-of-2.jsonl
parts
echo '{"custom_id":"strange","text":""}' >>answers.2-of-2.jsonl
refuses "an answer too many" 1 "answers.2-of-2.jsonl has an answer that matches no line of prompts.jsonl, to \"strange\"" batch --merge prompts.jsonl -o answers.jsonl
rm answers.2-of-2.jsonl
parts
sort answers.2-of-2.jsonl >answers.1-of-2.jsonl
refuses "the answers of another part" 1 "11 of the answers that are there match no line of prompts.jsonl that is part 1 of 2's, the first to \"n10\", which may be another part's; --restart drops them all" \
    batch --shard 1/2 prompts.jsonl -o answers.jsonl
rm answers*.jsonl
parts
printf '{"custom_id":"to' >>answers.1-of-2.jsonl
merges "a torn line is none"
cp prompts.jsonl whole.jsonl
sed 's/"prompt":"Once there was a [67]"/"promt":""/; s/"again"/5/' whole.jsonl >prompts.jsonl
parts
cp whole.jsonl prompts.jsonl
parts
merges "errors of lines that were repaired are left out"
refuses "no parts" 1 "there are no parts of answers.jsonl" batch --merge prompts.jsonl -o answers.jsonl
parts
: >answers.1-of-3.jsonl
refuses "parts of two jobs" 1 "there are parts of" batch --merge prompts.jsonl -o answers.jsonl
rm answers.1-of-3.jsonl
if command -v flock >/dev/null; then
    flock answers.jsonl.merging sh -c '"$TGEN" batch --merge prompts.jsonl -o answers.jsonl 2>err; echo $? >code'
    if [ "$(cat code)" -eq 1 ] && grep -qx "tgen: answers.jsonl is being merged by another process" err; then
        ok "two mergers"
    else
        fail "two mergers" "exit $(cat code): $(peek err)"
    fi
    rm -f answers.jsonl.merging
fi
refuses "--merge of one part" 2 "knows no --restart or --shard" batch --merge --shard 1/2 prompts.jsonl -o answers.jsonl
refuses "--merge anew" 2 "knows no --restart or --shard" batch --merge --restart prompts.jsonl -o answers.jsonl
refuses "--merge of a file without a name" 2 "the name of a file is empty" batch --merge '' -o answers.jsonl

# Answers take the place of answers, and of nothing else.
parts
for taken in "$tales/model.safetensors" "$tales/config.json" prompts.jsonl .; do
    rm -rf answers.jsonl
    if [ "$taken" = . ]; then mkdir answers.jsonl; else cp "$taken" answers.jsonl; fi
    refuses "--merge into a copy of $taken" 2 "answers.jsonl is there already and holds no answers" batch --merge prompts.jsonl -o answers.jsonl
    if [ "$taken" = . ] || cmp -s "$taken" answers.jsonl; then ok "which stays"; else fail "which stays" "$(peek answers.jsonl)"; fi
done
rm -rf answers.jsonl
for before in '' '{"custom_id":"n1","te' "$(head -n 2 expected)"; do
    parts
    printf %s "$before" >answers.jsonl
    merges "into what a job has left"
done
mkdir elsewhere
: >elsewhere/real.jsonl
ln -s elsewhere/real.jsonl answers.jsonl
parts
run batch --merge prompts.jsonl -o answers.jsonl
same "through a link, as a job writes" expected elsewhere/real.jsonl
if [ -L answers.jsonl ] && [ "$(ls elsewhere)" = real.jsonl ]; then ok "the link stays"; else fail "the link stays" "$(ls -l . elsewhere)"; fi
rm -f elsewhere/real.jsonl
ln -s elsewhere/real.jsonl between
ln -sf between answers.jsonl
run batch --merge prompts.jsonl -o answers.jsonl
same "through links to a file that is not there yet" expected elsewhere/real.jsonl
if [ -L answers.jsonl ] && [ -L between ] && [ "$(ls elsewhere)" = real.jsonl ]; then ok "the links stay"; else fail "the links stay" "$(ls -l . elsewhere)"; fi
rm -rf elsewhere
refuses "through links into no directory" 1 "cannot write to elsewhere/real.jsonl.merging: No such file" batch --merge prompts.jsonl -o answers.jsonl
ln -sf answers.jsonl between
refuses "through links in a circle" 1 "cannot write to answers.jsonl: Too many levels of symbolic links" batch --merge prompts.jsonl -o answers.jsonl
rm -f between answers*.jsonl
copy_model "$tmp/m"
refuses "a part of what is to be merged into the model" 2 "m/config.json is a file of the model" batch -m "$tmp/m" --shard 2/2 prompts.jsonl -o m/config.json

# A single process writes no part: what it has written is checked, and put into order.
alone() {
    "$TGEN" batch -q --shard 1/1 prompts.jsonl -o answers.jsonl </dev/null 2>/dev/null
}
alone
sort -r answers.jsonl >backwards
cp backwards answers.jsonl
printf '{"custom_id":"to' >>answers.jsonl
merges "the only part"
alone
chmod 640 answers.jsonl
run batch --merge prompts.jsonl -o answers.jsonl
if [ "$(stat -c %a answers.jsonl)" = 640 ]; then ok "it keeps its mode"; else fail "it keeps its mode" "$(ls -l answers.jsonl)"; fi
sed -i 2d answers.jsonl
cp answers.jsonl before
refuses "a line of the only part is missing" 1 "1 of 25 lines have no answer" batch --merge prompts.jsonl -o answers.jsonl
same "it stays as it is" before answers.jsonl
head -n 1 answers.jsonl >>answers.jsonl
refuses "a line of the only part is doubled" 1 "line 25 of answers.jsonl answers what was answered already" batch --merge prompts.jsonl -o answers.jsonl
rm answers.jsonl
alone
printf 'my notes' >>answers.jsonl
cp answers.jsonl before
refuses "notes behind the only part" 1 "line 26 of answers.jsonl is no answer" batch --merge prompts.jsonl -o answers.jsonl
same "they stay" before answers.jsonl
rm answers.jsonl

refuses "--merge without -o" 2 "--merge needs" batch --merge prompts.jsonl
if [ -e answers.jsonl ] || [ -e answers.jsonl.merging ]; then fail "a refusal leaves nothing" "$(ls)"; else ok "a refusal leaves nothing"; fi
rm -f answers*.jsonl

# What is no file has no parts.
mkfifo pipe
"$TGEN" batch --shard 1/2 prompts.jsonl -o pipe </dev/null 2>err &
program=$!
n=$(timeout 60 sh -c "wc -l <pipe")
wait $program
if [ "$n" -eq 13 ] && [ ! -e pipe.1-of-2 ]; then ok "a part into a pipe"; else fail "a part into a pipe" "$n lines: $(peek err)"; fi
rm -f pipe*
ln -s /dev/null nowhere.jsonl
run batch --shard 1/2 prompts.jsonl -o nowhere.jsonl
if [ "$(echo nowhere*)" = nowhere.jsonl ]; then ok "a part into a device"; else fail "a part into a device" "$(echo nowhere*)"; fi
rm -f nowhere*

# ---- which part am I -----------------------------------------------------------------------------------------------

# finds NAME K-of-N VARIABLES...: these variables in the environment make a process that part.
finds() {
    name=$1 part=$2
    shift 2
    rm -f answers*.jsonl
    env "$@" "$TGEN" batch -q two.jsonl -o answers.jsonl </dev/null 2>err
    code=$?
    if [ $code -eq 0 ] && [ "$(echo answers*.jsonl)" = "answers$part.jsonl" ]; then
        ok "$name"
    else
        fail "$name" "exit $code: $(echo answers*.jsonl) $(peek err)"
    fi
    rm -f answers*.jsonl
}
printf '{"prompt":"A","max_tokens":1}\n{"prompt":"B","max_tokens":1}\n' >two.jsonl
finds "Open MPI" .3-of-4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4
finds "PMI" .1-of-2 PMI_RANK=0 PMI_SIZE=2
finds "a Slurm step" .2-of-3 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3
finds "a Slurm batch script runs one process" "" SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=3
finds "a Slurm array" .2-of-3 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2
finds "a Slurm array with steps" .3-of-3 SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=2
finds "ranks in an array" .6-of-6 SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=2 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3
finds "one rank is the whole job" "" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1

# Who does a part that nobody asked for on the command line is told.
note='tgen: note: part 2 of 2, by SLURM_ARRAY_TASK_ID and _COUNT, into answers.2-of-2.jsonl; --shard 1/1 answers all lines'
env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 "$TGEN" batch two.jsonl -o answers.jsonl </dev/null 2>err
if [ "$(cat err)" = "$note" ]; then ok "a note of the part"; else fail "a note of the part" "$(peek err)"; fi
env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 PMI_RANK=0 PMI_SIZE=2 "$TGEN" batch two.jsonl -o answers.jsonl </dev/null 2>err
has "a note of ranks in an array" 'part 3 of 4, by SLURM_ARRAY_TASK_ID and _COUNT, and by PMI_RANK and PMI_SIZE, into' err
env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 "$TGEN" batch --shard 1/1 two.jsonl -o answers.jsonl </dev/null 2>err
if [ ! -s err ] && [ "$(wc -l <answers.jsonl)" -eq 2 ]; then ok "--shard 1/1 in an array"; else fail "--shard 1/1 in an array" "$(peek err)"; fi
rm -f answers*.jsonl
as="env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2" succeeds "-q has no note" batch -q two.jsonl -o answers.jsonl
as="env SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=1" succeeds "the only part has none" batch two.jsonl -o answers.jsonl
succeeds "nor has --shard" batch --shard 1/2 two.jsonl -o answers.jsonl
rm -f answers*.jsonl
export SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7
refuses "an array with gaps" 2 "do not have the numbers of one range" batch two.jsonl -o answers.jsonl
SLURM_ARRAY_TASK_ID=1x
refuses "a task without a number" 2 "do not say which part of a job this is" batch two.jsonl -o answers.jsonl
SLURM_ARRAY_TASK_ID=5
unset SLURM_ARRAY_TASK_COUNT
refuses "tasks that nobody has counted" 2 "do not say which part of a job this is" batch two.jsonl -o answers.jsonl
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX
export OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4
refuses "a rank that cannot be" 2 "the variables of Open MPI number this process 4 of 4" batch two.jsonl -o answers.jsonl
OMPI_COMM_WORLD_RANK=0
refuses "ranks without -o" 2 "this is process 1 of 4: lines must come from a file" batch two.jsonl
input=two.jsonl refuses "ranks without a file" 2 "this is process 1 of 4: lines must come from a file" batch -o answers.jsonl
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE

# no_part NAME VARIABLES...: these say that there are others, but not which part this is.
no_part() {
    part_name=$1
    shift
    as="env $*" refuses "$part_name" 2 "do not say which part of a job this is" batch two.jsonl -o answers.jsonl
}
no_part "a rank of Open MPI without a size" OMPI_COMM_WORLD_RANK=1
no_part "a size of Open MPI without a rank" OMPI_COMM_WORLD_SIZE=2
no_part "PMI with a size that is no number" PMI_RANK=0 PMI_SIZE=junk
no_part "PMI with a rank that is no number" PMI_RANK=-1 PMI_SIZE=2
no_part "a Slurm step with a size that is no number" SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=x
no_part "a Slurm step without a size" SLURM_STEP_ID=0 SLURM_PROCID=1

# ---- the README's recipes ------------------------------------------------------------------------------------------

mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$TGEN" >bin/tgen
chmod +x bin/tgen
PATH=$tmp/bin:$PATH
sed -n '/^## Many processes/,/^## [^M]/s/^    //p' "$root/README.md" >recipes

# recipe NAME PATTERN: runs the line of the README that matches, and merges as the README says.
recipe() {
    sed -n "/$2/p" recipes | head -n 1 >recipe
    if [ ! -s recipe ]; then
        fail "$1" "the README has no such recipe"
        return
    fi
    rm -f answers*.jsonl
    timeout 120 sh recipe </dev/null >out 2>err
    recipe_code=$?
    [ -z "${3-}" ] || $3
    cp err recipe_err
    sh -c "$(grep -e --merge recipes)" </dev/null >>out 2>err
    if cmp -s expected answers.jsonl; then ok "$1"; else fail "$1" "exit $recipe_code: $(peek recipe_err) $(peek err)"; fi
    if [ "$(find . -name 'answers.*-of-4.jsonl' | wc -l)" -eq 4 ]; then ok "$1: four parts"; else fail "$1: four parts" "$(echo answers*)"; fi
    rm -f answers*.jsonl
}
if command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q GNU; then
    recipe "GNU parallel" '^parallel '
else
    skip "GNU parallel" "it is not here"
fi
if command -v mpirun >/dev/null; then
    # Root and more processes than cores are nothing that a job of the README needs to say.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    recipe "mpirun" '^mpirun '
else
    skip "mpirun" "it is not here"
fi

# A cluster of this host alone, with directories, keys and ports of its own.
slurm_up() {
    mkdir -m 700 slurm slurm/state slurm/spool || return 1
    host=$(hostname -s)
    port=$((20000 + $$ % 20000))
    dd if=/dev/urandom of=slurm/key bs=128 count=1 2>/dev/null
    chmod 400 slurm/key
    chmod 755 "$tmp" slurm # munged wants its directories to be anyone's to see and root's to write
    cat >slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/slurm/munge
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$tmp/slurm/state
SlurmdSpoolDir=$tmp/slurm/spool
SlurmctldPidFile=$tmp/slurm/slurmctld.pid
SlurmdPidFile=$tmp/slurm/slurmd.pid
SlurmctldLogFile=$tmp/slurm/slurmctld.log
SlurmdLogFile=$tmp/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
    export SLURM_CONF="$tmp/slurm/slurm.conf"
    munged --force --foreground --key-file="$tmp/slurm/key" --socket="$tmp/slurm/munge" --pid-file="$tmp/slurm/munge.pid" \
        --log-file="$tmp/slurm/munge.log" --seed-file="$tmp/slurm/munge.seed" >slurm/munge.out 2>&1 &
    munged=$!
    sleep 0.5
    slurmctld -D -c >slurm/slurmctld.out 2>&1 &
    slurmctld=$!
    slurmd -D -N "$host" >slurm/slurmd.out 2>&1 &
    slurmd=$!
    for _ in $(seq 100); do
        sinfo -h -o %T 2>/dev/null | grep -q idle && return 0
        kill -0 $slurmctld 2>/dev/null && kill -0 $slurmd 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}
slurm_down() {
    for daemon in "$slurmd" "$slurmctld" "$munged"; do
        [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
    done
    wait 2>/dev/null
}
array_done() {
    for _ in $(seq 300); do
        [ -n "$(squeue -h 2>/dev/null)" ] || break
        sleep 0.2
    done
    cat slurm-*.out >>err 2>/dev/null
}
if command -v slurmctld >/dev/null && command -v munged >/dev/null && [ "$(id -u)" -eq 0 ]; then
    munged= slurmctld= slurmd=
    trap 'slurm_down; rm -rf "$tmp"' EXIT
    if slurm_up; then
        recipe "srun" '^srun '
        recipe "a Slurm array" '^sbatch ' array_done
    else
        tail -n 5 slurm/*.out slurm/*.log >slurm_why 2>/dev/null
        skip "Slurm" "it does not start here: $(peek slurm_why)"
    fi
    slurm_down
else
    skip "Slurm" "it is not here, or not root's"
fi

finish
