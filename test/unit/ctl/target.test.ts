import { describe, expect, it } from 'vitest'
import { chooseTarget, parseHost } from '../../../src/ctl/target.ts'

describe('a host', () => {
  it.each([
    ['box', 'box', 5080, 'box'],
    ['Box.Example', 'box.example', 5080, 'box.example'],
    ['box:8443', 'box', 8443, 'box:8443'],
    ['192.0.2.7:1', '192.0.2.7', 1, '192.0.2.7:1'],
    ['2001:db8::7', '2001:db8::7', 5080, '[2001:db8::7]'],
    ['[2001:db8::7]:81', '2001:db8::7', 81, '[2001:db8::7]:81'],
    ['https://box:5080', 'box', 5080, 'box'],
    ['https://box:5080/', 'box', 5080, 'box'],
    ['HTTPS://Box.Example', 'box.example', 5080, 'box.example'],
    ['https://192.0.2.7:8443', '192.0.2.7', 8443, '192.0.2.7:8443'],
    ['https://[2001:DB8::7]:5080/', '2001:db8::7', 5080, '[2001:db8::7]'],
    ['https://[2001:db8::7]', '2001:db8::7', 5080, '[2001:db8::7]'],
    ['fe80::1%eth0', 'fe80::1%eth0', 5080, '[fe80::1%eth0]'],
    ['[fe80::1%eth0]:81', 'fe80::1%eth0', 81, '[fe80::1%eth0]:81'],
  ])('the host %s is parsed', (text, host, port, name) => {
    expect(parseHost(text, '/f')).toMatchObject({ host, port, name })
  })

  it.each([
    '',
    'a b',
    'http://box',
    'https://',
    'https://a@box',
    'https://https://box',
    'box:',
    'box:0',
    'box:70000',
    '../x',
    '[box]',
    '[192.0.2.7]',
    '[1::2::3]',
    '1:2:3',
    '-x',
  ])('%j is not a host', (text) => {
    expect(() => parseHost(text, '/f')).toThrow(/is not a host/)
  })

  it.each(['https://box:5080/path', 'https://box//a/', 'https://[2001:db8::7]/v1/ping', 'a/b'])(
    'a host with a path is refused: %s',
    (text) => {
      expect(() => parseHost(text, '/f')).toThrow(
        `${text} has a path after the host; write NAME, ADDRESS, NAME:PORT, [IPV6]:PORT or https://HOST:PORT`,
      )
    },
  )

  it('each host has files of its own, whatever its name', () => {
    const files = ['a', 'a:1', '::1', '[::1]:2'].map((text) => parseHost(text, '/f').keyFile)
    expect(new Set(files).size).toBe(4)
    for (const file of files) expect(file).toMatch(/^\/f\/hosts\/[^/]+\.json$/)
  })
})

const folder = () => '/f'
/** Of a root without a home, say. */
const never = () => {
  throw new Error('no folder is needed')
}

describe('where to', () => {
  it('options win over the environment', () => {
    const environment = { EDGEHOSTCTL_HOST: 'there', EDGEHOSTCTL_SOCKET: '/s' }
    expect(chooseTarget({ host: 'box' }, environment, folder)).toMatchObject({ host: 'box' })
    expect(chooseTarget({ socket: '/x' }, environment, folder)).toEqual({ kind: 'socket', path: '/x' })
    expect(chooseTarget({}, environment, folder)).toMatchObject({ host: 'there' })
    expect(chooseTarget({}, { EDGEHOSTCTL_SOCKET: '/s' }, folder)).toEqual({ kind: 'socket', path: '/s' })
    expect(chooseTarget({}, {}, never)).toEqual({ kind: 'socket', path: '/run/edgehostd/edgehostd.sock' })
  })

  it('--host and --socket together are refused', () => {
    expect(() => chooseTarget({ host: 'box', socket: '/x' }, {}, never)).toThrow(/exclude/)
  })
})
