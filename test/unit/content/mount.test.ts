import { expect, it } from 'vitest'
import { isMounted } from '../../../src/content/store/folder.ts'
import { mountOf, parseMountinfo } from '../../../src/system/mountinfo.ts'

// As the kernel writes it: the state folder of a unit is a mount of itself, beside a disk, an automount and a folder bound elsewhere.
const mounts = parseMountinfo(
  [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '30 22 8:1 /var/lib/edgehostd /var/lib/edgehostd rw,relatime - ext4 /dev/sda1 rw',
    '31 30 8:17 / /var/lib/edgehostd/content rw,relatime shared:5 master:2 - xfs /dev/sdb1 rw',
    '32 22 8:1 /srv/own /srv/own rw - ext4 /dev/sda1 rw',
    '33 22 8:1 /srv/other /srv/bound rw - ext4 /dev/sda1 rw',
    '34 22 0:40 / /srv/auto rw - autofs systemd-1 rw',
    '35 22 8:33 / /srv/with\\040space rw - ext4 /dev/sdc1 rw',
  ].join('\n'),
)

it.each([
  ['/var/lib/edgehostd/content', true, 'another disk'],
  ['/srv/bound', true, 'a folder that is bound there from elsewhere'],
  ['/srv/with space', true, 'a disk at a path with a space'],
  ['/srv/own', false, 'a folder that the unit has mounted on itself'],
  ['/srv/auto', false, 'an automount that has not mounted anything'],
  ['/var/lib/edgehostd', false, 'the state folder'],
  ['/var/lib/edgehostd/content/blobs', false, 'a folder below a disk'],
  ['/srv/nothing', false, 'a folder of the root file system'],
])('%s: mounted is %s for %s', (folder, expected) => {
  expect(isMounted(mounts, folder)).toBe(expected)
})

it('a folder lies in the mount with the longest path above it, and not in one whose name only begins alike', () => {
  expect(mountOf(mounts, '/var/lib/edgehostd/content/blobs')?.fileSystemType).toBe('xfs')
  expect(mountOf(mounts, '/var/lib/edgehostd/contents')?.mountPoint).toBe('/var/lib/edgehostd')
  expect(mountOf(mounts, '/home')?.mountPoint).toBe('/')
})

it.each([
  ['a later mount of a folder above it', '41 22 8:49 / /var rw - xfs /dev/sdd1 rw', '/var'],
  [
    'a later mount of itself',
    '41 31 8:49 / /var/lib/edgehostd/content rw - nfs4 store:/x rw',
    '/var/lib/edgehostd/content',
  ],
])('a disk that is hidden by %s has no folder, and counts as no mount there', (_, line, mountPoint) => {
  const table = parseMountinfo(
    [
      '22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw',
      '31 22 8:17 / /var/lib/edgehostd/content rw - xfs /dev/sdb1 rw',
      line,
    ].join('\n'),
  )
  const folder = '/var/lib/edgehostd/content'
  expect(mountOf(table, `${folder}/blobs`)).toMatchObject({ id: '41', mountPoint })
  expect(isMounted(table, folder)).toBe(mountPoint === folder)
})

it.each([
  ['overlay', '22 1 0:30 / / rw,relatime - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/u,workdir=/w'],
  ['fuse.mergerfs', '22 1 0:31 / / rw,nosuid,nodev - fuse.mergerfs a\\040-\\040b:/c rw,user_id=0'],
  ['ecryptfs', '22 1 0:32 / / rw - ecryptfs /home/.x rw,ecryptfs_sig=1'],
  ['zfs', '22 1 0:33 / / rw,noexec shared:1 master:2 - zfs tank/var\\040lib rw,xattr'],
  ['nfs4', '22 1 0:34 / / rw - nfs4 192.0.2.1:/a\\134b rw,vers=4.2'],
  ['tmpfs', '22 22 0:35 / / rw - tmpfs  rw'],
])('a line of %s is parsed, whatever its source has', (type, line) => {
  expect(mountOf(parseMountinfo(line), '/var')).toMatchObject({ fileSystemType: type, mountPoint: '/' })
})
