# flags.sh FILE: runs show.sh under the flags of each line, with numactl and with `run`. Prints
#   flags LINE TOOL CODE cpus=… policy=…      nothing behind the code where the program was not started
line=0
while read -r flags; do
    # shellcheck disable=SC2086
    for tool in numactl run; do
        if [ $tool = run ]; then command="$AGENT run"; else command=numactl; fi
        shown=$($command $flags sh "$LAB/show.sh" $((line % 7)) 2>/tmp/err </dev/null)
        echo "flags $line $tool $? $shown"
    done
    line=$((line + 1))
done <"$1"
