import { expect, it } from 'vitest'
import { isExempt, parseNoProxy, parseProxy, proxyLogin, proxyShown } from '../../../src/outgoing/proxy.ts'

it.each([
  ['http://proxy.plant.example:3128', 'http://proxy.plant.example:3128'],
  ['HTTP://Proxy.Plant.Example:3128/', 'http://proxy.plant.example:3128'],
  ['https://[2001:db8::7]:3129', 'https://[2001:db8::7]:3129'],
  ['http://edge@proxy:3128', 'http://edge@proxy:3128'],
  ['http://edge:p@ss@proxy:3128', 'http://edge:p%40ss@proxy:3128'],
  [`http://edge:a"b'c$d\`e%25f%5Cg@proxy:3128`, 'http://edge:a%22b%27c%24d%60e%25f%5Cg@proxy:3128'],
  ['http://edge:%C3%BC%20(!*)@proxy:3128', 'http://edge:%C3%BC%20%28%21%2A%29@proxy:3128'],
])('the proxy %s is spelled %s, without a character that files read in another way', (text, url) => {
  const parsed = parseProxy(text)
  expect(parsed.url).toBe(url)
  expect(parsed.url).toMatch(/^[A-Za-z0-9._~%:@/[\]-]+$/)
  // What a host reads back is the same.
  expect(parseProxy(parsed.url)).toEqual(parsed)
})

it.each([
  ['proxy:3128', /^has to begin with http/],
  ['socks5://proxy:1080', /^has to begin with http/],
  ['http://proxy:99999', /^is not a URL/],
  ['http://edge:pa/ss@proxy:3128', /^is not a URL/],
  ['http://proxy:3128/path', /^has a path/],
  ['http://edge:pa#ss@proxy:3128', /^(is not a URL|has a path)/],
  ['http://proxy:3128\nHTTP_PROXY=x', /^has white space/],
  ['http://pro xy:3128', /^has white space/],
  ['http://edge:%zz@proxy:3128', /^has a % without/],
  ['http://edge:%0A@proxy:3128', /^has a control character/],
  ['http://:secret@proxy:3128', /^has a password without a user/],
  [`http://${'a'.repeat(3_000)}:3128`, /^is longer/],
])('the proxy %s is refused, and the reason does not show it', (text, reason) => {
  expect(() => parseProxy(text)).toThrow(reason)
})

it('the password of a proxy is masked, and a mask is known', () => {
  const { shown, isMasked } = parseProxy('http://edge:canary@proxy:3128')
  expect({ shown, isMasked }).toEqual({ shown: 'http://edge:********@proxy:3128', isMasked: false })
  expect(parseProxy(shown).isMasked).toBe(true)
  expect(proxyShown('http://edge:canary@proxy:3128')).toBe('http://proxy:3128')
  expect(proxyLogin('http://edge:p%40ss@proxy:3128')).toBe(
    `Basic ${Buffer.from('edge:p@ss').toString('base64')}`,
  )
  expect(proxyLogin('http://proxy:3128')).toBeUndefined()
})

it('exemptions are names, addresses and networks', () => {
  expect(
    parseNoProxy(
      ' a.example, .b.example,*.c.example 192.0.2.7:8080\n10.0.0.0/8,[2001:db8::1]:443,fd00::/64,*,a.example,',
    ),
  ).toEqual([
    ...[
      'a.example',
      '.b.example',
      '*.c.example',
      '192.0.2.7:8080',
      '10.0.0.0/8',
      '[2001:db8::1]:443',
      'fd00::/64',
      '*',
    ],
  ])
})

it.each(['a"b', "a'b", 'a%b', 'a;b', 'http://a', '10.0.0.0/33', '10.0.0', 'a..b', '$HOME'])(
  'the exemption %s is refused',
  (entry) => {
    expect(() => parseNoProxy(`a.example,${entry}`)).toThrow(/^has "/)
  },
)

it.each([
  ['https://localhost:5000/x', '', true],
  ['https://127.0.0.9', '', true],
  ['https://[::1]:1', '', true],
  ['https://a.example', '', false],
  ['https://a.example', 'a.example', true],
  ['https://sub.A.example', 'a.example', true],
  ['https://ba.example', 'a.example', false],
  ['https://a.example', '.a.example', false],
  ['https://sub.a.example', '*.a.example', true],
  ['https://a.example', 'a.example:443', true],
  ['https://a.example:8443', 'a.example:443', false],
  ['http://a.example', 'a.example:80', true],
  ['https://10.1.2.3', '10.0.0.0/8', true],
  ['https://11.1.2.3', '10.0.0.0/8', false],
  ['https://10.1.2.3', '10.1.2.3', true],
  ['https://10.1.2.3', '2.3', false],
  ['https://[2001:db8::1]', '2001:DB8:0::1', true],
  ['https://[2001:db8::1]:444', '[2001:db8::1]:443', false],
  ['https://a.example', '*', true],
])('whether %s needs no proxy with %j is %s', (url, exemptions, is) => {
  const entries =
    exemptions === '' || exemptions === '2.3'
      ? exemptions.split(',').filter(Boolean)
      : parseNoProxy(exemptions)
  expect(isExempt(url, entries)).toBe(is)
})
