# all.sh: runs scripts of this folder one after the other; the first that fails ends it.
for script; do
    sh "$LAB/$script" || exit
done
