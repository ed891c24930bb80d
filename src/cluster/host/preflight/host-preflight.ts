import type { PreflightProblem } from '../../problem.ts'
import type { Wanted } from '../../wanted.ts'
import { findAnsweringDevice } from '../address/answering-device.ts'
import { endpointPath } from '../address/place-endpoint.ts'
import { readHostFacts, type HostFactsOptions } from './host-facts.ts'
import { judgeHost, judgeHostOfChange } from './judge-host.ts'
import { judgeResolver, readResolver } from './resolver.ts'

/** The checks of this host before a cluster; all at once, and nothing is changed. */
export function createHostPreflight(options: HostFactsOptions) {
  return async (
    wanted: Wanted,
    signal: AbortSignal,
    running?: Wanted,
  ): Promise<readonly PreflightProblem[]> => {
    const attempt = async (what: string, check: () => Promise<readonly PreflightProblem[]>) => {
      try {
        return await check()
      } catch (error) {
        signal.throwIfAborted()
        const message = `${what} could not be checked: ${(error as Error).message}`
        return [{ code: 'CheckFailed', severity: 'error', message } as const]
      }
    }
    const found = await Promise.all([
      attempt('this host', async () => {
        // Loaded with the first cluster: a start does not need yaml.
        const { kubernetesSettings } = await import('../kubernetes-settings.ts')
        const settings = kubernetesSettings(wanted.kubernetes.config)
        const [facts, resolver] = await Promise.all([
          readHostFacts(options),
          readResolver(options.files, settings),
        ])
        const ofResolver = judgeResolver(resolver, settings)
        if (!running) return [...judgeHost(facts, wanted, settings), ...ofResolver]
        // A cluster that runs has to be changed also where its names are not resolved.
        const warnings = ofResolver.map((each) => ({ ...each, severity: 'warning' as const }))
        return [...judgeHostOfChange(facts, wanted, running, settings), ...warnings]
      }),
      // The cluster itself has it already.
      running ? [] : attempt('the address of the control plane', () => judgeAddress(wanted, options, signal)),
    ])
    return found.flat()
  }
}

async function judgeAddress(
  { node: { virtualAddress } }: Wanted,
  options: HostFactsOptions,
  signal: AbortSignal,
): Promise<readonly PreflightProblem[]> {
  if (!virtualAddress) return []
  const device = await findAnsweringDevice(virtualAddress, options, signal)
  if (device === undefined) return []
  return [
    {
      code: 'EndpointTaken',
      severity: 'error',
      message: `a device with the hardware address ${device} has the address ${virtualAddress.address} already (interface ${virtualAddress.networkInterface}); take a free one`,
      path: endpointPath,
    },
  ]
}
