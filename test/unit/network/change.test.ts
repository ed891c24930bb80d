import { expect, it } from 'vitest'
import {
  isByDhcp,
  type ChangeSet,
  type NetworkState,
  type StateFile,
} from '../../../src/network/change-set.ts'
import { filesOfChange, heirsOf, NotWritable } from '../../../src/network/trial/change.ts'

const folder = '/run/systemd/network'
const state = (more: Partial<NetworkState> = {}): NetworkState => ({
  files: [],
  devices: [],
  up: [],
  expected: [],
  ...more,
})
const file = (path: string, content: StateFile['content'] = 'absent'): StateFile => ({
  path,
  mode: 0o640,
  content,
})
const change = (more: Partial<ChangeSet> = {}): ChangeSet => ({
  backend: 'networkd',
  links: ['eth1', 'br0'],
  before: state({
    expected: [{ link: 'eth1', addresses: ['192.0.2.5/24', 'fd00::5/64'], gateway: '192.0.2.1' }],
  }),
  after: state({
    files: [
      file(`${folder}/05 a.network`, { text: '[Match]\n' }),
      file(`${folder}/10-old.network`, 'masked'),
    ],
    devices: ['br0'],
    up: ['a connection'],
    expected: [{ link: 'br0', addresses: [] }],
  }),
  kept: [file('/etc/x.network', { text: 'kept\n' }), file('/etc/y.network')],
  summary: 'a bridge',
  ...more,
})

it('a change is written as the program reads it', () => {
  expect(Object.fromEntries(filesOfChange('u1', change(), 60))).toEqual({
    uid: 'u1\n',
    backend: 'networkd\n',
    window: '60\n',
    links: 'eth1\nbr0\n',
    'before/files': '',
    'before/devices': '',
    'before/up': '',
    'before/expected': 'eth1 192.0.2.1 192.0.2.5/24 fd00::5/64\n',
    'after/files': `0 640 text ${folder}/05 a.network\n1 640 masked ${folder}/10-old.network\n`,
    'after/0': '[Match]\n',
    'after/asked': '',
    'after/devices': 'br0\n',
    'after/up': 'a connection\n',
    'after/expected': 'br0 - dhcp\n',
    'after/heirs': 'eth1 br0\n',
    'kept/files': '0 640 text /etc/x.network\n1 640 absent /etc/y.network\n',
    'kept/0': 'kept\n',
  })
})

it('an address by DHCP has to come, whatever else the link has', () => {
  const after = state({ expected: [{ link: 'br0', addresses: ['fd00::5/64'], isLeased: true }] })
  expect(filesOfChange('u1', change({ after }), 60).get('after/expected')).toBe('br0 - dhcp fd00::5/64\n')
  expect(after.expected.map(isByDhcp)).toEqual([true])
  // Of a link without IPv4.
  expect(isByDhcp({ link: 'br0', addresses: ['fd00::5/64'] })).toBe(false)
})

it.each([
  ['a path with a line end', { kept: [file('/etc/a\nb')] }],
  ['a path that is not absolute', { kept: [file('etc/a')] }],
  ['a path that ends with a slash', { kept: [file('/etc/a/')] }],
  ['a link with a blank', { links: ['eth 1'] }],
  ['a connection with a line end', { after: state({ up: ['a\nb'] }) }],
])('%s is refused, since the program would read something else', (_name, more) => {
  expect(() => filesOfChange('u1', change(more), 60)).toThrow(NotWritable)
})

const expected = (...links: string[]) => state({ expected: links.map((link) => ({ link, addresses: [] })) })

it.each([
  ['the bridge over a NIC has what was on it', ['eth1'], ['br0'], [['eth1', 'br0']]],
  ['the NIC has it again', ['br0'], ['eth1'], [['br0', 'eth1']]],
  [
    'a bond of two has what was on both',
    ['eth1', 'eth2'],
    ['bond0'],
    [
      ['eth1', 'bond0'],
      ['eth2', 'bond0'],
    ],
  ],
  ['a link that keeps its addresses is its own heir', ['eth1', 'eth2'], ['eth1', 'eth2'], []],
  ['a new link beside it takes nothing', ['eth1'], ['eth1', 'eth1.7'], []],
  ['of two new links neither is known to be the heir', ['eth1'], ['br0', 'br1'], []],
])('%s', (_name, before, after, heirs) => {
  expect([...heirsOf({ before: expected(...before), after: expected(...after) })]).toEqual(heirs)
})
