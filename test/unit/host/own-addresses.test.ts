import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createHostFiles } from '../../../src/host/files.ts'
import { createOwnAddresses } from '../../../src/host/network/network.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'edgehostd-own-'))
  await mkdir(join(root, 'proc/net'), { recursive: true })
})
afterEach(() => rm(root, { recursive: true }))

const write = (name: string, text: string) => writeFile(join(root, 'proc/net', name), text)

// Of a host with a bridge without carrier, which os.networkInterfaces() leaves out.
const fibTrie = `Main:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 172.17.0.0/16 2 0 2
        |-- 172.17.0.1
           /32 host LOCAL
        |-- 172.17.255.255
           /32 link BROADCAST
     |-- 192.0.2.7
        /32 host LOCAL
`
const ifInet6 = `00000000000000000000000000000001 01 80 10 80       lo
20010db8000100020000000000000007 02 40 00 80     eth0
20010db800010002a1b2c3d4e5f60718 02 40 00 01     eth0
fd0000000000000000000000000000aa 02 80 00 80     eth0
fe80000000000000020000fffe000007 02 40 20 80     eth0
`

it('own addresses are those of all interfaces, with the /64 of each global one', async () => {
  await write('fib_trie', fibTrie)
  await write('if_inet6', ifInet6)
  const own = createOwnAddresses(createHostFiles(root))
  expect(own.current().addresses.size).toBe(0)
  await own.refresh()
  expect([...own.current().addresses].sort()).toEqual([
    ...['127.0.0.1', '172.17.0.1', '192.0.2.7', '2001:db8:1:2::7', '2001:db8:1:2:a1b2:c3d4:e5f6:718'],
    ...['::1', 'fd00::aa', 'fe80::200:ff:fe00:7'],
  ])
  expect([...own.current().networks]).toEqual(['2001:db8:1:2::/64', 'fd00::/64'])
})

it('own addresses follow addresses that are added and removed, also without IPv6', async () => {
  await write('fib_trie', fibTrie)
  const own = createOwnAddresses(createHostFiles(root))
  await own.refresh()
  expect(own.current().networks.size).toBe(0)
  await write('if_inet6', ifInet6)
  await own.refresh()
  const before = own.current()
  expect(before.networks.size).toBe(2)
  await own.refresh()
  expect(own.current(), 'the same list is returned where nothing changed').toBe(before)
  await write('if_inet6', '')
  await own.refresh()
  expect(own.current().networks.size).toBe(0)
})

it('the addresses of this machine are its own', async () => {
  const own = createOwnAddresses(createHostFiles())
  await own.refresh()
  expect(own.current().addresses).toContain('127.0.0.1')
})
