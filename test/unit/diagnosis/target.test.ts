import { expect, it } from 'vitest'
import { parseTarget } from '../../../src/diagnosis/target.ts'
import { ping } from '../../../src/diagnosis/verbs.ts'
import { problemOfInput } from '../../../src/verbs/verb.ts'

it.each([
  ['192.0.2.1', { host: '192.0.2.1' }],
  ['192.0.2.1:8000', { host: '192.0.2.1', port: 8000 }],
  ['2001:db8::1', { host: '2001:db8::1' }],
  ['[2001:db8::1]:443', { host: '2001:db8::1', port: 443 }],
  ['fe80::1%eth0', { host: 'fe80::1%eth0' }],
  ['registry.plant.example', { host: 'registry.plant.example' }],
  ['edge_1.example.:5000', { host: 'edge_1.example.', port: 5000 }],
  ['http://registry.example:5000/', { host: 'registry.example', port: 5000, scheme: 'http' }],
  ['HTTPS://registry.example', { host: 'registry.example', scheme: 'https' }],
])('%s is a target', (text, target) => {
  expect(parseTarget(text, 'target')).toEqual(target)
})

it.each([
  ...[
    '',
    ' ',
    '-f',
    '-I',
    '--help',
    'a b',
    'a;reboot',
    '$(id)',
    '`id`',
    'a\nb',
    'a/b',
    'user@host',
    '..',
    'a..b',
  ],
  ...[
    '192.0.2',
    '1',
    '0x7f.1',
    '300.1.1.1',
    'fe80::1%',
    'fe80::1%a b',
    '[::1',
    'host:0',
    'host:65536',
    'host:x',
  ],
  'x'.repeat(254),
])('%j is no target, and the refusal names the field', (text) => {
  const accepted = () => parseTarget(text, 'endpoint')
  if (text === '0x7f.1') expect(accepted).toThrow(/endpoint/)
  else expect(accepted).toThrow(/^endpoint (must be|has a port)/)
})

it('the verb takes an address alone, and the program gets it after --', () => {
  for (const address of ['host.example', '-f', '::1 -f', '1.2.3.4;id', ''])
    expect(problemOfInput(ping, { address, count: 1 }), address).toContain('address')
  for (const address of ['192.0.2.1', 'fe80::1%eth0', '::1'])
    expect(problemOfInput(ping, { address, count: 1 })).toBeUndefined()
  const { args } = ping.command({ address: '192.0.2.1', count: 1 }, {} as never)
  expect(args.slice(-2)).toEqual(['--', '192.0.2.1'])
})
