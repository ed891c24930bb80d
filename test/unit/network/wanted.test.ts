import { describe, expect, it } from 'vitest'
import type { NicRequest } from '../../../src/network/schemas.ts'
import {
  readBond,
  readBridge,
  readNic,
  readVlan,
  warningsOf,
  type Read,
} from '../../../src/network/wanted.ts'

const fieldsOf = (read: Read) => ('problems' in read ? read.problems.map(({ field }) => field) : [])
const wantedOf = (read: Read) => ('wanted' in read ? read.wanted : undefined)

describe('a request for a NIC', () => {
  it('of the type static has address, mask and gateway, and what it does not name is absent', () => {
    const body: NicRequest = {
      type: 'static',
      ip: '192.0.2.9',
      subnet: '255.255.255.0',
      gateway: '192.0.2.1',
    }
    expect(wantedOf(readNic('eth0', body))).toEqual({
      ...{ kind: 'nic', name: 'eth0' },
      addressing: { type: 'static', address: '192.0.2.9/24', gateway: '192.0.2.1' },
    })
  })

  it('with empty texts is one without them', () => {
    const body: NicRequest = { type: 'dhcp', ip: '', subnet: '', gateway: '', vlanID: '', name: '' }
    expect(wantedOf(readNic('eth0', body))).toEqual({
      kind: 'nic',
      name: 'eth0',
      addressing: { type: 'dhcp' },
    })
  })

  it.each<[NicRequest, readonly string[]]>([
    [{ type: 'static' }, ['ip', 'subnet']],
    [{ type: 'static', ip: '192.0.2.300', subnet: '255.0.255.0', gateway: 'x' }, ['ip', 'subnet', 'gateway']],
    [{ type: 'static', ip: '192.0.2.9', subnet: '0.0.0.0' }, ['subnet']],
    [{ type: 'static', ip: '192.0.2.9', subnet: '254.0.0.0' }, ['subnet']],
    [{ type: 'static', ip: '10.0.0.9', subnet: '255.0.0.0' }, []],
    [{ type: 'dhcp', ip: '192.0.2.9', gateway: '192.0.2.1' }, ['ip', 'gateway']],
    [{ type: 'dhcp', mtu: 20, nameservers: ['192.0.2.1', 'dns.example'] }, ['mtu', 'nameservers[1]']],
    [{ type: 'dhcp', vlanID: '7', name: 'eth1' }, ['name', 'vlanID']],
  ])('%j is refused with all its fields', (body, fields) => {
    expect(fieldsOf(readNic('eth0', body))).toEqual(fields)
  })

  it('with a VLAN says where VLANs are made', () => {
    const read = readNic('eth0', { type: 'dhcp', vlanID: '7' })
    expect('problems' in read && read.problems[0]?.reason).toContain('/v1/edge-mgmt/network/vlans/eth0.7')
  })

  it('with an MTU below that of IPv6 gets a warning', () => {
    expect(warningsOf(wantedOf(readNic('eth0', { type: 'dhcp', mtu: 1_200 }))!)).toHaveLength(1)
    expect(warningsOf(wantedOf(readNic('eth0', { type: 'dhcp', mtu: 1_280 }))!)).toHaveLength(0)
  })
})

describe('a request for a bond', () => {
  it('has its options as networkd spells them, and DHCP where it says nothing of its address', () => {
    const body = { members: ['eth0'], mode: '802.3ad', miiMonitorSec: '0.2', lacpTransmitRate: 'fast' }
    expect(wantedOf(readBond('bond0', body))).toMatchObject({
      addressing: { type: 'dhcp' },
      options: { mode: '802.3ad', miiMonitorSec: '0.2', lacpTransmitRate: 'fast' },
    })
  })

  it.each([
    [{ members: [] }, ['members']],
    [{ members: ['eth0', 'eth0', 'bond0'] }, ['members[1]', 'members[2]']],
    [{ members: ['eth0'], mode: 'fast', transmitHashPolicy: 'layer9' }, ['mode', 'transmitHashPolicy']],
    [{ members: ['eth0'], mode: 'active-backup', lacpTransmitRate: 'slow' }, ['lacpTransmitRate']],
    [{ members: ['eth0'], miiMonitorSec: '1 s' }, ['miiMonitorSec']],
    [{ members: ['eth0'], vlanID: '7' }, ['vlanID']],
  ])('%j is refused', (body, fields) => {
    expect(fieldsOf(readBond('bond0', body))).toEqual(fields)
  })

  it.each(['a b', '0bond', 'bond/0', 'a-name-of-sixteen', 'docker7', 'all'])(
    '%s is no name for it',
    (name) => {
      expect(fieldsOf(readBond(name, { members: ['eth0'] }))).toEqual(['name'])
    },
  )
})

describe('a request for a VLAN', () => {
  const body = { parentName: 'eth0', parentType: 'nic' as const, vlanID: '7' }

  it('has the name of its parent and its number', () => {
    expect(wantedOf(readVlan('eth0.7', body))).toMatchObject({ name: 'eth0.7', parent: 'eth0', id: 7 })
    expect(fieldsOf(readVlan('plant', body))).toEqual(['name'])
  })

  it.each(['0', '4095', 'seven', ''])('with the number %j is refused', (vlanID) => {
    expect(fieldsOf(readVlan(`eth0.${Number(vlanID)}`, { ...body, vlanID }))).toEqual(['vlanID'])
  })

  it('whose name would be longer than the kernel allows is refused', () => {
    const long = { ...body, parentName: 'enp0s31f6n1' }
    expect(fieldsOf(readVlan('enp0s31f6n1.4000', { ...long, vlanID: '4000' }))).toEqual(['parentName'])
  })
})

it('a bridge without stpEnabled, or with null, says nothing of the spanning tree protocol', () => {
  for (const stpEnabled of [undefined, null])
    expect(
      wantedOf(readBridge('br0', { name: 'br0', ...(stpEnabled === undefined ? {} : { stpEnabled }) })),
    ).not.toHaveProperty('isStpOn')
  expect(wantedOf(readBridge('br0', { name: 'br0', stpEnabled: false }))).toMatchObject({
    isStpOn: false,
    members: [],
  })
})
