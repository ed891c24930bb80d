import { randomBytes } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { contentClient, imageLayout, noReserve } from '../../support/content-uploads.ts'
import { createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let shell: CtlShell
beforeAll(async () => {
  shell = await createCtlShell()
})
afterAll(() => shell.stop())

let edge: TestEdge
let socket: string
afterEach(() => edge.stop())

/** Starts a host with an image. @returns host and port of its registry */
async function start(registry: object = {}): Promise<string> {
  socket = shell.at(`${randomBytes(4).toString('hex')}.sock`)
  edge = await createTestEdge({
    content: {
      ...noReserve,
      registry: { enabled: true, address: '127.0.0.1', port: 0, anonymous: false, ...registry },
    },
    socket,
  })
  await edge.daemon.start()
  const layout = imageLayout(['layer'], 'registry.example/app:1')
  await contentClient(edge, (await edge.login('alice')).access).upload(layout)
  return `127.0.0.1:${edge.content.registry.state().port}`
}
const run = (args: string) =>
  shell.run(`edgehostctl content registry ${args}`, { EDGEHOSTCTL_SOCKET: socket })
const password = () => edge.content.registry.state().password

describe('edgehostctl content registry', () => {
  it('show says where it listens and which registries its images are of', async () => {
    const host = await start()
    const { stdout } = await run('show')
    expect(stdout).toMatch(new RegExp(`Registry: http://${host}$`, 'm'))
    expect(stdout).toMatch(/State: listening$/m)
    expect(stdout).toMatch(/Images of: registry\.example$/m)
    expect(stdout).not.toContain(password())
  })

  it('config prints a file whole below its path, and what else is to be done on standard error', async () => {
    const host = await start()
    const { stdout, stderr, exitCode } = await run('config --for containerd')
    expect(exitCode).toBe(0)
    const basic = Buffer.from(`edgehostd:${password()}`).toString('base64')
    expect(stdout).toMatch(/^# \/etc\/containerd\/certs\.d\/_default\/hosts\.toml \(mode 0600\)\n/)
    expect(stdout).toContain(`\nserver = "http://${host}"\n`)
    expect(stdout.split(`  Authorization = "Basic ${basic}"`)).toHaveLength(3)
    expect(stderr).toContain('config_path')
  })

  it('-o json has path, mode and content, and the registries of the images', async () => {
    const host = await start()
    const { stdout } = await run('config --for podman -o json')
    const { files } = JSON.parse(stdout) as { files: { path: string; mode: string; content: string }[] }
    expect(files.map(({ path, mode }) => [path, mode])).toEqual([
      ['/etc/containers/registries.conf.d/edgehostd.conf', '0644'],
      ['/root/.config/containers/auth.json', '0600'],
    ])
    expect(files[0]?.content).toContain(
      `prefix = "registry.example"\nlocation = "${host}/registry.example"\ninsecure = true\n`,
    )
  })

  it('--directory writes the files, and replaces another one only with --replace', async () => {
    await start()
    const args = 'config --for k3s --directory written'
    const file = shell.at('written/etc/rancher/k3s/registries.yaml')
    const { stdout } = await run(args)
    expect(stdout).toBe('written/etc/rancher/k3s/registries.yaml')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const content = await readFile(file, 'utf8')
    expect(content).toContain(password())
    expect((await run(args)).exitCode).toBe(0)

    await writeFile(file, 'mirrors: {}\n')
    expect(await run(args)).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/registries\.yaml has another content.*--replace/s) as string,
    })
    expect(await readFile(file, 'utf8')).toBe('mirrors: {}\n')
    expect((await run(`${args} --replace -o json`)).stdout).not.toContain(password())
    expect(await readFile(file, 'utf8')).toBe(content)
  })

  it('docker is told that it needs a registry without a password, and gets its mirror from one', async () => {
    await start()
    const refused = await run('config --for docker')
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
    expect(refused.stderr).toContain('content.registry.anonymous: true')
    await edge.stop()
    const host = await start({ anonymous: true })
    expect((await run('config --for docker')).stdout).toBe(
      `# /etc/docker/daemon.json (mode 0644)\n{\n  "registry-mirrors": ["http://${host}"]\n}`,
    )
    expect((await run('config --for podman -o json')).stdout).not.toContain('auth.json')
  })

  it('a registry for other machines is named by --address, with its certificate', async () => {
    const host = await start({ address: '0.0.0.0' })
    const certificate = await readFile(`${edge.stateDirectory}/tls/certificate.pem`, 'utf8')
    expect((await run('config --for podman')).stdout).toContain(`"${host}/registry.example"`)
    const named = host.replace('127.0.0.1', 'box.example')
    const { files } = JSON.parse((await run('config --for podman --address box.example -o json')).stdout) as {
      files: { path: string; content: string }[]
    }
    expect(files.at(-1)).toMatchObject({
      path: `/etc/containers/certs.d/${named}/ca.crt`,
      content: certificate,
    })
    expect(await run('config --for podman --address https://box')).toMatchObject({ exitCode: 2, stdout: '' })
  })

  it.each([
    ['a command without --for', {}, 'config', 2, 'containerd, k3s, podman, docker'],
    ['an IPv6 address', { address: '::1' }, 'config --for k3s', 1, '--address NAME'],
    [
      'a registry that is switched off',
      { enabled: false },
      'config --for k3s',
      1,
      'content.registry.enabled',
    ],
  ])('%s is refused, with what helps', async (_, registry, args, exitCode, words) => {
    await start(registry)
    const ended = await run(args)
    expect(ended).toMatchObject({ exitCode, stdout: '' })
    expect(ended.stderr.replaceAll(/\s+/g, ' ')).toContain(words)
  })
})
