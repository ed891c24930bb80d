import { expect, it } from 'vitest'
import { isMounted, mountOf, parseMounts } from '../../../src/content/store/folder.ts'

// As the kernel writes it: the state folder of a unit is a mount of itself, beside a disk, an automount and a folder bound elsewhere.
const mounts = parseMounts(
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
  expect(mountOf(mounts, '/var/lib/edgehostd/content/blobs')?.type).toBe('xfs')
  expect(mountOf(mounts, '/var/lib/edgehostd/contents')?.mountPoint).toBe('/var/lib/edgehostd')
  expect(mountOf(mounts, '/home')?.mountPoint).toBe('/')
})
