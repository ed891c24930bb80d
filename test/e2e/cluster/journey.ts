import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createContentCtl } from '../../support/content-ctl.ts'
import type { KubernetesKit } from '../../support/kubernetes-kit.ts'
import { bootEdgehostd, type Edgehostd } from '../host/edgehostd.ts'
import { clusterGround, clusterWire } from '../host/ground.ts'
import { output, run, type Ended } from '../host/process.ts'
import { chief, configurationOf, password, plantSettings } from './cluster-host.ts'
import { writePlant, type PlantWish } from './plant-definition.ts'
import { writeContent } from './plant-files.ts'

/** What happens to the host before a command is typed. */
export type Interruption = 'restart' | 'power cut'

const minutes = 60_000

/**
 * An operator at a workstation beside a host, who types the commands of the README: edgehostctl as it ships, with a home of its own. Between
 * every two commands the host is interrupted, and the next one is typed as soon as it has booted.
 */
export interface Operator {
  readonly host: Edgehostd
  /** Folder of the workstation. */
  readonly folder: string
  /** A command on the workstation alone, which has to succeed. @returns its output */
  alone(...args: readonly string[]): Promise<string>
  /** A command for the host after an interruption; it has to succeed. @returns its output */
  types(interruption: Interruption, ...args: readonly string[]): Promise<string>
  /** The same, however it ends. */
  tries(interruption: Interruption, ...args: readonly string[]): Promise<Ended>
  /** Builds a definition, and a bundle that brings it along. @returns both files */
  builds(name: string, wish: BuildWish): Promise<{ readonly definition: string; readonly bundle: string }>
  /** Writes the body of the creation for a definition. @returns the file */
  describes(archiveUploadPath: string): Promise<string>
  unplug(): Promise<void>
}

export interface BuildWish {
  readonly definition?: PlantWish
  /** Whether the bundle has all that a cluster needs; otherwise one image. */
  readonly isWhole: boolean
}

/** Boots a host with an administrator, and gives an operator who has not logged in. */
export async function bootForOperator(kit: KubernetesKit): Promise<Operator> {
  const folder = await mkdtemp(join(tmpdir(), 'workstation-'))
  const { program, remove } = createContentCtl()
  let host: Edgehostd | undefined
  const unplug = async () => {
    await host?.unplug()
    remove()
    await rm(folder, { recursive: true })
  }
  try {
    host = await bootEdgehostd({ lower: 'machine', ground: clusterGround })
    await host.addUser({ name: chief, password, groups: ['sudo'] })
    await host.configure('plant', plantSettings)
    return { ...operatorOf(host, { kit, folder, program }), unplug }
  } catch (error) {
    await unplug()
    throw error
  }
}

interface Workstation {
  readonly kit: KubernetesKit
  readonly folder: string
  readonly program: string
}

function operatorOf(host: Edgehostd, { kit, folder, program }: Workstation): Omit<Operator, 'unplug'> {
  const options = { env: { HOME: folder }, timeoutMs: 5 * minutes }
  const typed = async (args: readonly string[], input = ''): Promise<Ended> =>
    run(
      'nsenter',
      [
        ...['-t', String(host.clientNamespace()), '-n', 'setsid', '--wait', process.execPath, program],
        ...['--host', clusterWire.host.ipv4, ...args],
      ],
      { ...options, input },
    )
  const succeeded = (args: readonly string[], { exitCode, stdout, stderr }: Ended) => {
    expect(exitCode, `edgehostctl ${args.join(' ')}\n${stderr}\n${stdout}`).toBe(0)
    return stdout
  }
  const operator: Omit<Operator, 'unplug'> = {
    ...{ host, folder },
    alone: (...args) => output(process.execPath, [program, ...args], options),
    async tries(interruption, ...args) {
      if (interruption === 'restart') await host.output(['systemctl', 'restart', 'edgehostd'])
      else await host.cutPower()
      if (args[0] !== 'login') return typed(args)
      const shown = JSON.parse(await host.output(['edgehostctl', '-o', 'json', 'status'])) as {
        service: { certificate: { fingerprint: string } }
      }
      const { fingerprint } = shown.service.certificate
      return typed(['--fingerprint', fingerprint, ...args, '--password-stdin'], `${password}\n`)
    },
    types: async (interruption, ...args) => succeeded(args, await operator.tries(interruption, ...args)),
    async builds(name, { definition: wish, isWhole }) {
      const [definition, bundle] = [join(folder, `${name}.tar.zst`), join(folder, `${name}-bundle.tar`)]
      const { profile, packs } = await writePlant(join(folder, name), kit, wish)
      await operator.alone(
        ...['definition', 'build', '--profile', profile, '--pack', packs, '--output', definition],
      )
      await operator.alone('definition', 'validate', definition)
      const least = {
        withoutImages: /^(?!pause)/,
        withoutPrograms: ['kubeadm', 'kubelet', 'kubectl', 'helm', 'etcdctl'],
      }
      await writeContent(kit, bundle, { ...(isWhole ? {} : least), definition })
      expect(await operator.alone('content', 'inspect', bundle)).toContain('Definition')
      return { definition, bundle }
    },
    async describes(archiveUploadPath) {
      const file = join(folder, 'cluster.json')
      await writeFile(file, JSON.stringify(configurationOf(archiveUploadPath)))
      return file
    },
  }
  return operator
}

/** `archiveUploadPath` of what `api get …/details` has shown. */
export const uploadPathOf = (shown: string): string =>
  (JSON.parse(shown) as { archiveUploadPath: string }).archiveUploadPath
