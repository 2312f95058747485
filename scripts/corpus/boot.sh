#!/bin/sh
# Boots a Linux kernel on an emulated machine (QEMU without KVM), runs one command in it as root and
# prints what the command prints; exits with the command's exit code.
#
#   boot.sh '<qemu arguments>' <directory to pack, or -> '<command>'
#
#   boot.sh '-smp 4 -m 1G' - 'numactl -H'
#   boot.sh "$(shape.sh 4 2)" /tmp/pack 'cd /pack && ./atoll-tools topo'
#
# The directory's contents are /pack in the guest, with /pack and /pack/lib on the paths for programs
# and libraries; numactl, numastat, lstopo and busybox are there as well.
#
# LAB          where the kernel is (pkg/kernel, unpacked from the package linux-image-cloud-amd64) and
#              archives are kept; default: the directory of this script
# KERNEL       another kernel
# CPU, HMAT    the emulated processor (max), whether the machine has an HMAT (off)
# APPEND       more words for the kernel's command line
# SECONDS_MAX  how long the guest may run (120)
#
# One guest runs at a time. The console of the last one is $LAB/console.log.
set -eu
LAB=${LAB:-$(dirname "$(readlink -f "$0")")}
KERNEL=${KERNEL:-$(ls "$LAB"/pkg/kernel/boot/vmlinuz-* | head -1)}
[ $# -eq 3 ] || { sed -n 2,22p "$0" >&2; exit 64; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

archive() { (cd "$1" && find . | cpio --quiet -o -H newc); }

copy_with_libraries() { # program, root
    mkdir -p "$2$(dirname "$1")"
    cp -L "$1" "$2$1"
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$2$(dirname "$library")"
        cp -Ln "$library" "$2$library" || true
    done
}

base() {
    root=$work/base
    mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/root"
    cp "$(command -v busybox)" "$root/bin/busybox"
    for name in $(busybox --list); do ln -s busybox "$root/bin/$name" 2>/dev/null || true; done
    copy_with_libraries /usr/bin/numactl "$root"
    copy_with_libraries /usr/bin/numastat "$root"
    copy_with_libraries "$(readlink -f /usr/bin/lstopo-no-graphics)" "$root"
    ln -s lstopo-no-graphics "$root/usr/bin/lstopo"
    mkdir -p "$root/lib64" && cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
    cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin:/usr/bin:/usr/sbin:/pack HOME=/root TERM=dumb LC_ALL=C.UTF-8
export LD_LIBRARY_PATH=/pack/lib
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp; mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up 2>/dev/null
hostname guest
stty -F /dev/ttyS1 raw -echo
stty -F /dev/ttyS2 raw -echo
sh /command >/dev/ttyS1 2>&1 </dev/null
echo $? >/dev/ttyS2
poweroff -f
INIT
    chmod +x "$root/init"
    archive "$root" >"$LAB/base.cpio.new" && mv "$LAB/base.cpio.new" "$LAB/base.cpio"
}

exec 9>"$LAB/lock"
flock 9
[ -f "$LAB/base.cpio" ] && [ "$LAB/base.cpio" -nt "$0" ] || base
mkdir -p "$work/extra/pack"
[ "$2" = - ] || cp -rL "$2/." "$work/extra/pack/"
printf '%s\n' "$3" >"$work/extra/command"
archive "$work/extra" | cat "$LAB/base.cpio" - >"$work/initramfs"
code=0
timeout "${SECONDS_MAX:-120}" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu "${CPU:-max}" -machine "q35,hmat=${HMAT:-off}" -nic none \
    -display none -monitor none -no-reboot \
    -kernel "$KERNEL" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1 ${APPEND:-}" \
    -serial "file:$LAB/console.log" -serial "file:$work/out" -serial "file:$work/code" \
    $1 9>&- >&2 || code=$?
cat "$work/out"
if [ ! -s "$work/code" ]; then
    echo "boot.sh: the guest did not finish (qemu: $code); its console says:" >&2
    tail -20 "$LAB/console.log" >&2
    exit 70
fi
exit "$(tr -dc 0-9 <"$work/code")"
