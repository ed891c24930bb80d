import { copyFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandBlocks } from '../../support/document-commands.ts'
import { hasKit, isKitMissing, kit, kitVersions } from '../../support/kubernetes-kit.ts'
import { bootEdgehostd, type Edgehostd } from '../host/edgehostd.ts'
import { clusterGround } from '../host/ground.ts'
import { plantSettings } from './cluster-host.ts'
import { writeContent } from './plant-files.ts'

const document = join(import.meta.dirname, '../../../docs/first-hour.md')
const minute = 60_000
/** The folder on the host in which its user works. */
const folder = '/root/first-hour'

// What a kubelet needs on the hosts of the tests (see ground.ts); the last key of the values of the Kubernetes pack is a text.
const forThisGround = `    initConfiguration:
      nodeRegistration:
        ignorePreflightErrors: [SystemVerification]
    kubeletConfiguration:
      failCgroupV1: false
      failSwapOn: false
      localStorageCapacityIsolation: false
    kubeProxyConfiguration:
      conntrack: {maxPerCore: 0}
`

let host: Edgehostd | undefined

/** Runs the commands of a heading as the document has them. @returns what they print, with standard error */
async function follow(heading: string, timeoutMs = 5 * minute): Promise<string> {
  const text = await readFile(document, 'utf8')
  const scripts = commandBlocks(text).filter((block) => block.heading === heading)
  expect(scripts, `commands below "${heading}" of the document`).not.toEqual([])
  let all = ''
  for (const { script } of scripts) {
    // There is no internet: what would be got, the kit has.
    if (/skopeo|apt-get/.test(script)) await provide(script)
    else {
      const shell = ['bash', '--norc', '-euo', 'pipefail', '-c']
      const ended = await host!.run([...shell, `cd ${folder}; exec 2>&1; ${script}`], { timeoutMs })
      all += ended.stdout
      expect(ended.exitCode, `${script}\n${ended.stdout}`).toBe(0)
    }
  }
  return all
}

/** Puts the bundle that a block would build where it would write it. */
async function provide(script: string): Promise<void> {
  const [, name = ''] = /--output (\S+)/.exec(script) ?? []
  if (name === '') return
  const version = kitVersions.find((each) => name.includes(each))
  const found = version && (await kit(version))
  if (!found) throw new Error(`the kit has no content for ${name}`)
  const made = join(host!.folder, name)
  await writeContent(found, made)
  await copyFile(made, `/proc/${host!.leader}/root${folder}/${name}`)
  await rm(made)
}

const page = () => host!.output(['curl', '--fail', '--silent', '--max-time', '5', 'http://127.0.0.1:30080/'])

beforeAll(async () => {
  if (!hasKit) return
  host = await bootEdgehostd({ lower: 'machine', ground: clusterGround })
  await host.sh(`mkdir ${folder}`)
  // A change that does not come is taken back after 10 minutes where nothing else is configured.
  await host.configure('first-hour', `${plantSettings}cluster:\n  update: {timeoutSeconds: 60}\n`)
}, 5 * minute)
afterAll(() => host?.unplug())

describe.skipIf(isKitMissing())('the document of the first hour', { timeout: 15 * minute }, () => {
  it('begins with an example, which is built and can be used', async () => {
    // Both blocks of the heading, with what this ground needs between them.
    const [init, build] = commandBlocks(await readFile(document, 'utf8')).filter(
      ({ heading }) => heading === 'A definition',
    )
    expect(await host!.sh(`cd ${folder}; ${init?.script ?? ''}`)).toContain('shop 1.0.0')
    await host!.sh(`cd ${folder}; printf %s "$1" >> shop/packs/edge-k8s-1.33.13/values.yaml`, forThisGround)
    expect(await host!.sh(`cd ${folder}; exec 2>&1; ${build?.script ?? ''}`)).toContain('can be used')
  })

  it('lists what it needs, as the document shows it', async () => {
    const listed = await follow('What it needs')
    const text = await readFile(document, 'utf8')
    const [, shown = ''] = /## What it needs\n\n```sh\n[^`]+```\n\n```\n([^`]+)```/.exec(text) ?? []
    const plain = (lines: string) =>
      lines.split('\n').flatMap((line) => line.trim().replaceAll(/ +/g, ' ') || [])
    expect(plain(shown)).toHaveLength(16)
    for (const line of plain(shown)) expect(plain(listed)).toContain(line)
  })

  it('finds all of it in the bundle', async () => {
    expect(await follow('The content')).toContain('all that is needed is in the given bundles')
  })

  it('makes a cluster of it, whose application answers', async () => {
    const said = await follow('The cluster', 10 * minute)
    expect(said).toContain('all that is needed is on this host')
    expect(said).toMatch(/^hello$/m)
    expect(said).not.toContain('a secret of my own')
  })

  it('has pulled the images of the list, and no other', async () => {
    const linesOf = (text: string) => text.split('\n').filter(Boolean).sort()
    const listed = await host!.sh(`cd ${folder}; edgehostctl definition needs shop-1.0.0.tgz --list image`)
    const images = ['--namespace', 'k8s.io', 'images', 'list', '--quiet']
    const pulled = await host!.output([
      'ctr',
      '--address',
      '/run/edgehostd-containerd/containerd.sock',
      ...images,
    ])
    // Each is there by its digest too.
    expect(linesOf(pulled).filter((name) => !/^sha256:|@/.test(name))).toEqual(linesOf(listed))
  })

  it('changes it', async () => {
    expect(await follow('A change')).toMatch(/^good morning$/m)
  })

  it('has a broken change taken back, while the application answers', async () => {
    const said = await follow('A broken change', 10 * minute)
    expect(said).toContain('it was taken back')
    expect(said).toMatch(/^good morning$/m)
  })

  it('takes it to another version of Kubernetes', async () => {
    expect(await follow('Another version of Kubernetes', 15 * minute)).toContain('v1.34.4')
    expect(await page()).toBe('good morning\n')
  })

  it('ends with a host without a cluster', async () => {
    await follow('The end', 10 * minute)
    await expect(page()).rejects.toThrow()
    const kept = (await host!.run(['edgehostctl', 'cluster', 'get'])).exitCode
    expect(kept).not.toBe(0)
  })
})
