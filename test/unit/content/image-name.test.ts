import { describe, expect, it } from 'vitest'
import { formatImageName, parseImageName, nameEntry } from '../../../src/content/format/image-name.ts'
import { annotations as keys } from '../../../src/content/format/media-types.ts'

const digest = `sha256:${'a'.repeat(64)}`
const other = `sha256:${'b'.repeat(64)}`

describe('the name of an image', () => {
  it.each([
    ['busybox', 'docker.io/library/busybox:latest'],
    ['busybox:1.36', 'docker.io/library/busybox:1.36'],
    ['library/busybox', 'docker.io/library/busybox:latest'],
    ['rancher/k3s:v1.33.3-k3s1', 'docker.io/rancher/k3s:v1.33.3-k3s1'],
    ['docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['index.docker.io/busybox:1', 'docker.io/library/busybox:1'],
    ['index.docker.io/library/busybox', 'docker.io/library/busybox:latest'],
    ['localhost/busybox', 'localhost/busybox:latest'],
    ['localhost:5000/busybox', 'localhost:5000/busybox:latest'],
    ['registry:5000/a/b/c:v1', 'registry:5000/a/b/c:v1'],
    ['registry.example/a', 'registry.example/a:latest'],
    ['Registry.Example:5000/a:V1', 'registry.example:5000/a:V1'],
    ['REGISTRY/a', 'registry/a:latest'],
    ['[2001:db8::1]:5000/a', '[2001:db8::1]:5000/a:latest'],
    ['10.0.0.1/a', '10.0.0.1/a:latest'],
    ['a/b__c/d.e/f--g', 'docker.io/a/b__c/d.e/f--g:latest'],
    [`busybox@${digest}`, `docker.io/library/busybox@${digest}`],
    [`quay.io/a/b:1@${digest}`, `quay.io/a/b:1@${digest}`],
    [`a:${'t'.repeat(128)}`, `docker.io/library/a:${'t'.repeat(128)}`],
  ])('%s is %s', (text, wanted) => {
    const found = parseImageName(text)
    expect('problem' in found ? found.problem : formatImageName(found)).toBe(wanted)
  })

  it('a normalised name is its own normal form', () => {
    for (const text of ['busybox', 'index.docker.io/a/b:1', `localhost:1/x:2@${digest}`]) {
      const first = formatImageName(parseImageName(text) as { name: string })
      expect(formatImageName(parseImageName(first) as { name: string })).toBe(first)
    }
  })

  it.each([
    ['', 'is empty'],
    [digest, 'is a digest'],
    ['a'.repeat(64), 'is a digest'],
    ['Busybox', 'capital letters'],
    ['docker.io/Library/busybox', 'capital letters'],
    ['busybox:', 'tag'],
    ['busybox:-x', 'tag'],
    [`busybox:${'t'.repeat(129)}`, 'tag'],
    ['busybox@sha256:abc', 'digest'],
    [`busybox@sha512:${'a'.repeat(128)}`, 'digest'],
    ['a//b', 'path'],
    ['a/', 'path'],
    ['/a', 'path'],
    ['registry.example/', 'path'],
    ['a___b', 'path'],
    ['a..b', 'path'],
    ['a b', 'path'],
    ['-host.example/a', 'host'],
    ['host.example:/a', 'host'],
    ['ex:ample:1/a', 'host'],
    ['a/../b', 'path'],
    [`x/${'a'.repeat(255)}`, 'path'],
    ['ünïcode', 'path'],
    ['a\nb', 'path'],
    ['x'.repeat(5_000), 'characters'],
  ])('%.40j is no name', (text, problem) => {
    expect(parseImageName(text)).toEqual({ problem: expect.stringContaining(problem) as string })
  })
})

describe('the name of an entry of index.json', () => {
  const name = (given: Record<string, string>) => nameEntry(new Map(Object.entries(given)), digest)
  const busybox = { name: 'docker.io/library/busybox', tag: '1.36' }

  it.each([
    ['ctr and Docker', { [keys.imageName]: 'docker.io/library/busybox:1.36', [keys.refName]: '1.36' }],
    ['a short image name', { [keys.imageName]: 'busybox:1.36' }],
    ['podman save', { [keys.refName]: 'docker.io/library/busybox:1.36' }],
    ['skopeo with a name as reference', { [keys.refName]: 'busybox:1.36' }],
    ['a layout of a packaging tool', { [keys.baseName]: 'docker.io/library/busybox:1.36' }],
    ['a base name beside a tag', { [keys.refName]: '1.36', [keys.baseName]: 'busybox:1.36' }],
    [
      'an invalid image name beside a whole ref name',
      { [keys.imageName]: 'Busy Box', [keys.refName]: 'busybox:1.36' },
    ],
    ['a tag with the digest of the entry', { [keys.imageName]: `busybox:1.36@${digest}` }],
  ])('%s', (_, given) => {
    expect(name(given)).toEqual(busybox)
  })

  it('a name with only the digest of the entry has no tag', () => {
    expect(
      name({ [keys.imageName]: `docker.io/library/busybox@${digest}`, [keys.refName]: `@${digest}` }),
    ).toEqual({
      name: 'docker.io/library/busybox',
    })
  })

  it.each([
    ['no annotation', {}],
    ['a tag alone', { [keys.refName]: 'latest' }],
    ['a tag that looks like a name', { [keys.refName]: 'busybox' }],
    ['a tag with a digest', { [keys.refName]: `latest@${digest}` }],
    ['the digest of a configuration as containerd stores it', { [keys.imageName]: other }],
    ['an image of Docker without a name', { [keys.imageName]: `moby-dangling@${digest}` }],
    [
      'an image that ctr has imported under its tag',
      { [keys.imageName]: 'import-2026-01-01:1.36', [keys.refName]: 'import-2026-01-01:1.36' },
    ],
    ['an imported image without a name', { [keys.imageName]: `import-2026-01-01@${digest}` }],
  ])('%s names no image', (_, given) => {
    expect(name(given)).toEqual({})
  })

  it.each([
    ['io.containerd.image.name Not A Name has capital letters', { [keys.imageName]: 'Not A Name' }],
    ['org.opencontainers.image.ref.name a//b:1 has a path', { [keys.refName]: 'a//b:1' }],
    ['names another digest', { [keys.imageName]: `busybox@${other}` }],
    ['is too long', { [keys.imageName]: 'x'.repeat(2_000) }],
    ['a\\u001b[2Jb:1 has', { [keys.imageName]: 'a\u001b[2Jb:1' }],
  ])('a name that %s is kept out', (problem, given) => {
    const { nameProblem, ...rest } = name(given)
    expect(rest).toEqual({})
    expect(nameProblem).toContain(problem)
    expect((nameProblem ?? '').length).toBeLessThan(500)
  })
})
