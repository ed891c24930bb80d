import { cards, uplink } from './hardware.ts'

/**
 * The volumes that an administrator would make on the disks, and the mounts of a Kubernetes node. Bash, to be
 * run as root in the machine.
 */
export const storage = `
by() { until readlink -e /dev/disk/by-id/$1; do sleep 0.2; done; }
format() { mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1,nodiscard "$1"; }
on() { mkdir -p "$1"; mount "\${@:2}" "$1"; }
udevadm settle
nvme0=$(by 'nvme-*nvme-0'); nvme1=$(by 'nvme-*nvme-1')
sata0=$(by 'ata-*sata-0'); sata1=$(by 'ata-*sata-1')
usb=$(by 'usb-*usb-0-0:0'); sas=$(by 'wwn-0x5000c50000000001'); sd=/dev/mmcblk0

# A mirror over both NVMe disks.
mdadm --create /dev/md0 --quiet --run --level=1 --raid-devices=2 --assume-clean --metadata=1.2 "$nvme0" "$nvme1"
format /dev/md0; on /srv/raid /dev/md0

# A group over both SATA disks: a volume that spans them, one that lies on the second alone, one of a pod.
vgcreate -q data "$sata0" "$sata1"
lvcreate -q -y -W n -L 256M -n lone data "$sata1"
lvcreate -q -y -W n -L 64M -n pod data "$sata1"
lvcreate -q -y -W n -l 100%FREE -n all data
for volume in all lone pod; do format /dev/data/$volume; done
on /srv/data /dev/data/all; on /srv/lone /dev/data/lone
on /var/lib/kubelet/pods/5f3c/volumes/csi/data/mount /dev/data/pod

# Encrypted, with the least of work for the key.
printf canary | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$usb" -
printf canary | cryptsetup open --key-file - "$usb" secret
format /dev/mapper/secret; on /srv/secret /dev/mapper/secret

echo 'type=c' | sfdisk -q "$sd"; udevadm settle
mkfs.vfat "$sd"p1 > /dev/null; on /srv/sd "$sd"p1
format "$sas"; on /srv/sas "$sas"

# No file systems of disks.
on /srv/tmpfs -t tmpfs tmpfs
mkdir /srv/raid/folder; on /srv/bind --bind /srv/raid/folder; on /srv/bind-all --bind /srv/data
mkdir /srv/data/upper /srv/data/work
on /srv/overlay -t overlay -o lowerdir=/etc,upperdir=/srv/data/upper,workdir=/srv/data/work overlay
mksquashfs /etc/systemd /srv/raid/image.squashfs -quiet -no-progress > /dev/null
on /srv/squashfs -o loop /srv/raid/image.squashfs
truncate -s 64M /srv/raid/image.ext4; format /srv/raid/image.ext4; on /srv/loop -o loop /srv/raid/image.ext4
`

const { left, right, six, unplugged } = cards

/** The network of a host that is a node too. */
export const network = `
up() { ip link set "$1" up; }
dev=${cards.uplink.nicName}
up $dev; ip address add ${uplink.address}/${uplink.length} dev $dev; ip address add 10.0.2.99/${uplink.length} dev $dev
ip route add default via ${uplink.router} dev $dev metric 100

# The module makes a bond of its own otherwise.
modprobe bonding max_bonds=0; modprobe dummy numdummies=0
ip link add bond0 type bond mode active-backup miimon 100
for member in ${left.nicName} ${right.nicName}; do ip link set $member master bond0; up $member; done
up bond0; ip address add 192.0.2.1/24 dev bond0
ip route add default via 192.0.2.254 dev bond0 metric 50
ip link add link bond0 name bond0.20 type vlan id 20
up bond0.20; ip address add 198.51.100.5/25 dev bond0.20

ip link add br0 type bridge; ip link add veth0 type veth peer name veth1
ip link set veth0 master br0; up veth0; up veth1; up br0; ip address add 203.0.113.9/28 dev br0

up ${unplugged.nicName}; ip address add 192.168.77.5/22 dev ${unplugged.nicName}
up ${six.nicName}; ip address add 2001:db8:6::5/64 dev ${six.nicName} nodad
ip route add default via 2001:db8:6::1 dev ${six.nicName} metric 1024

# What pods bring.
for pod in cali11a lxc22b; do
  ip link add $pod type veth peer name $pod-p; up $pod; ip address add 169.254.1.1/32 dev $pod
done
ip link add kube-ipvs0 type dummy; ip address add 10.96.0.1/32 dev kube-ipvs0
ip link add cni0 type bridge; up cni0; ip address add 10.244.0.1/24 dev cni0
ip tuntap add tap0 mode tap; up tap0
ip link add spare0 type dummy; up spare0; ip address add 10.1.1.1/24 dev spare0


sed -i '/^pool/d' /etc/chrony/chrony.conf; echo 'server 10.0.2.2' >> /etc/chrony/chrony.conf; systemctl restart chrony
resolvectl dns $dev 10.0.2.3; resolvectl dns bond0 192.0.2.53 192.0.2.54; resolvectl domain bond0 plant.example
`
