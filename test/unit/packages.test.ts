import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documentNames, readDocument } from '../../build/layout.ts'
import { documentPath } from '../../src/base/program.ts'
import type { HostFacts } from '../../src/cluster/host/host-facts.ts'
import { clusterPackages, judgeHost } from '../../src/cluster/host/judge-host.ts'
import { kubernetesSettings } from '../../src/cluster/host/kubernetes-settings.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))

describe('the documents of the packages', () => {
  it('a document is named by its path on the host', () => {
    expect(documentPath('operations.md')).toBe('/usr/share/doc/edgehostd/operations.md')
  })

  it('every document that a program, a unit or a manual names is in the packages', () => {
    const named = [...filesOf('src'), ...filesOf('systemd'), ...filesOf('build')].flatMap((path) => {
      const text = read(path)
      return [
        ...text.matchAll(/documentPath\(\s*'([^']+)'/g),
        ...text.matchAll(/documentPath\(byProgram\(\{ host: '([^']+)', platform: '[^']+' \}\)/g),
        ...text.matchAll(/documentPath\(byProgram\(\{ host: '[^']+', platform: '([^']+)' \}\)/g),
        ...text.matchAll(/\/usr\/share\/doc\/\w+\/([\w./-]+\.md)/g),
        ...text.matchAll(/(?<![\w/])docs\/([\w-]+(?:\/[\w-]+)*\.md)/g),
      ].map(([, name = '']) => ({ path, name }))
    })
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(({ name }) => !documentNames.includes(name))).toEqual([])
  })

  it('no message of a program names a document by its place in the sources', () => {
    const named = filesOf('src').flatMap((path) =>
      read(path)
        .split('\n')
        .filter((line) => /(?<![\w/])docs\/[\w/-]+\.md/.test(line))
        // Comments, and descriptions of fields in the document of the API.
        .filter(
          (line) => !/^\s*(\/\/|\*|\/\*)|\bdescription:|\btext\(|docs\/metrics\.md says what each/.test(line),
        )
        .map((line) => `${path}: ${line.trim()}`),
    )
    expect(named).toEqual([])
  })

  it('every link of a document leads to another one of the package', () => {
    const links = documentNames
      .filter((name) => name.endsWith('.md'))
      .flatMap((name) =>
        [
          ...readDocument(name)
            .toString()
            .matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g),
        ].map(([, target = '']) => normalize(join(dirname(name), target))),
      )
    expect(links.length).toBeGreaterThan(20)
    expect([...new Set(links)].filter((target) => !documentNames.includes(target))).toEqual([])
  })
})

describe('the package edgehostd-kubernetes', () => {
  const facts: HostFacts = {
    ...{ architecture: 'amd64', kernel: '6.1.0', memoryBytes: 2 ** 32, cores: 4, spaces: [], swaps: [] },
    ...{ ports: new Set<number>(), programs: new Set<string>(), cniPlugins: new Set<string>() },
    ...{ kubernetes: [], networkConfigs: [], droppingChains: [], sysctls: new Map<string, string>() },
    cgroups: { version: 2, controllers: new Set(['cpu', 'cpuset', 'memory', 'pids']) },
    clock: { now: Date.parse('2026-11-23T00:00:00Z'), isSynchronized: true },
    networks: { addresses: new Set(['10.77.0.11']), routes: [] },
  }
  const messages = judgeHost(
    facts,
    {
      kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: '', stages: [] },
      node: {
        ...{ name: 'edge-1', address: '10.77.0.11', endpoint: '10.77.0.11', poolName: 'control' },
        ...{ labels: {}, taints: [], runsWorkloads: true },
      },
    },
    kubernetesSettings(''),
  )
    .filter(({ code }) => code === 'HostProgramMissing')
    .map(({ message }) => message)

  it('the package depends on every Debian package that the pre-flight names', () => {
    const named = messages.flatMap(
      (message) => /or: apt-get install (.*)$/.exec(message)?.[1]?.split(' ') ?? [],
    )
    expect(named).toContain('containerd')
    expect(named.filter((name) => !clusterPackages.includes(name))).toEqual([])
    expect(read('build/debian-kubernetes/control')).toMatch(/^Depends: .*@CLUSTER_PACKAGES@$/m)
  })

  it('the installation of edgehostd looks for every program that the pre-flight looks for', () => {
    const programs = messages.flatMap(
      (message) => /on this host: ([^;]*);/.exec(message)?.[1]?.split(/, | or /) ?? [],
    )
    expect(programs).toContain('containerd')
    const [, body = ''] = /lacks_cluster_tools\(\) \{([^}]*)\}/.exec(read('build/debian/postinst')) ?? []
    for (const name of programs.filter((each) => each !== 'the CNI plugins'))
      expect(body.split(/[\s;]+/), name).toContain(name)
    expect(body).toContain('/usr/lib/cni/loopback')
  })
})
