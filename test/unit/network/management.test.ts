import { beforeAll, describe, expect, it } from 'vitest'
import type { Link } from '../../../src/network/links/links.ts'
import { heirOf, openManagement } from '../../../src/network/management.ts'
import { migrations } from '../../../src/edgehostd/migrations.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { captured } from '../../support/network-host.ts'
import { captureLog } from '../../support/https-server.ts'

let links: readonly Link[]
beforeAll(async () => {
  // eth0 has 192.0.2.20, br1 203.0.113.5, its port eth2 none.
  ;({ links } = await captured('networkd'))
})

describe('the management interface', () => {
  it.each([
    ['stays while its link has its address', ['eth0', '192.0.2.20'], ['eth0', '192.0.2.20']],
    ['knows another address of its link', ['eth0', '192.0.2.99'], ['eth0', '192.0.2.20']],
    ['goes along with its address', ['eth2', '203.0.113.5'], ['br1', '203.0.113.5']],
    ['goes along when its link is gone', ['bond7', '203.0.113.5'], ['br1', '203.0.113.5']],
    ['waits for a link that is unplugged', ['eth9', '198.51.100.250'], ['eth9', '198.51.100.250']],
    ['waits for a link that had no address', ['eth9', ''], ['eth9', '']],
  ] as const)('%s', (_, [name, address], [heir, its]) => {
    expect(heirOf({ name, address }, links)).toEqual({ name: heir, address: its })
  })

  it('is stored, and an empty name takes the choice back', () => {
    const database = openDatabase(':memory:', captureLog().log, migrations)
    const management = openManagement(database)
    expect(management.follow(links)).toBe(false)
    management.choose('eth0', links)
    expect(openManagement(database).name()).toBe('eth0')
    const moved = links.map((link) => {
      if (link.name === 'eth0') return { ...link, addresses: [] }
      if (link.name !== 'br1') return link
      return { ...link, addresses: links.find(({ name }) => name === 'eth0')!.addresses }
    })
    expect(management.follow(moved)).toBe(true)
    expect(management.follow(moved)).toBe(false)
    expect(openManagement(database).name()).toBe('br1')
    management.choose('', moved)
    expect(openManagement(database).name()).toBe('')
    database.close()
  })
})
