import { afterAll, beforeAll } from 'vitest'
import { hasKit } from '../../support/kubernetes-kit.ts'
import type { Edgehostd } from '../host/edgehostd.ts'
import { clusterClient, type ClusterClient } from './cluster-client.ts'
import {
  bootClusterHost,
  chief,
  password,
  type ClusterHost,
  type ClusterHostOptions,
} from './cluster-host.ts'
import { expectRestored, readHostState, type HostState } from './host-state.ts'

export interface BootForTestsOptions extends Partial<ClusterHostOptions> {
  /** Changes the host before its state is read. */
  readonly prepare?: (host: Edgehostd) => Promise<unknown>
  /** Whether the tests begin with a Running cluster. */
  readonly isRunning?: boolean
}

/** The host of a file of tests; its parts are there when the tests run. */
export interface TestHost extends ClusterHost {
  readonly cluster: ClusterClient
  /** The host before there was a cluster. */
  readonly before: HostState
  /** Expects that the host becomes as it was. */
  expectRestored(): Promise<void>
  /** For a daemon that has lost its sessions. */
  logInAgain(): Promise<void>
}

/**
 * Boots a host for the tests of a file, and unplugs it after them; without a kit, where such tests are skipped, it does nothing.
 * @param options a function of them is called when the host is booted
 */
export function bootForTests(options: BootForTestsOptions | (() => BootForTestsOptions) = {}): TestHost {
  let booted: { readonly plant: ClusterHost; readonly cluster: ClusterClient; readonly before: HostState }
  let plant: ClusterHost | undefined

  beforeAll(async () => {
    if (!hasKit) return
    const { prepare, isRunning = false, ...rest } = typeof options === 'function' ? options() : options
    plant = await bootClusterHost(rest)
    await prepare?.(plant.host)
    const [cluster, before] = [clusterClient(plant), await readHostState(plant.host)]
    booted = { plant, cluster, before }
    if (!isRunning) return
    await cluster.create()
    await cluster.reach('Running')
  })
  afterAll(() => plant?.host.unplug())

  return {
    get host() {
      return booted.plant.host
    },
    get kit() {
      return booted.plant.kit
    },
    get token() {
      return booted.plant.token
    },
    get definition() {
      return booted.plant.definition
    },
    configuration: (change) => booted.plant.configuration(change),
    get cluster() {
      return booted.cluster
    },
    get before() {
      return booted.before
    },
    expectRestored: () => expectRestored(booted.plant.host, booted.before),
    async logInAgain() {
      const { token } = await booted.plant.host.openSession(chief, password)
      const again = { ...booted.plant, token }
      booted = { ...booted, plant: again, cluster: clusterClient(again) }
    },
  }
}
