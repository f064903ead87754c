# Runs a command as a container engine would, in existing namespaces: on the machine's own file system, under an overlay
# that takes all writes.
#   container.sh LAYER rw|ro USER FOLDER HIDDEN "VOLUME…" COMMAND…
set -e
layer=$1 mode=$2 user=$3 folder=$4 hidden=$5 volumes=$6
shift 6
cd "$layer"
mkdir -p root/dev root/proc root/tmp
mount --bind root root
for name in bin etc home lib lib64 opt root sbin usr var; do
    if [ -L "/$name" ]; then
        ln -sfn "$(readlink "/$name")" "root/$name"
    elif [ -d "/$name" ]; then
        mkdir -p "upper/$name" "work/$name" "root/$name"
        # Without privileges, a folder that contains a mount cannot be overlaid.
        mount -t overlay -o "lowerdir=/$name,upperdir=upper/$name,workdir=work/$name,userxattr" overlay "root/$name" 2>/dev/null ||
            { mount --rbind "/$name" "root/$name" && mount -o remount,bind,ro "root/$name"; }
        [ "$mode" = rw ] || mount -o remount,bind,ro "root/$name"
    fi
done
mount -t proc proc root/proc
mount --rbind /dev root/dev
mount -t tmpfs tmpfs root/dev/shm
mount -t tmpfs tmpfs root/tmp
[ ! -d "root$hidden" ] || mount -t tmpfs tmpfs "root$hidden"
for volume in $volumes; do
    mkdir -p "volumes$volume"
    mount --bind "volumes$volume" "root$volume"
done
[ "$mode" = rw ] || mount -o remount,bind,ro root
cd root
pivot_root . .
umount -l .
cd "$folder"
[ "$user" != 0 ] || exec "$@"
exec unshare --user "--map-user=$user" "--map-group=$user" -- "$@"
