/** What `kubeadm upgrade plan -o json` says, as far as it is used: `UpgradePlan` of output.kubeadm.k8s.io. */
export interface UpgradePlan {
  /** Components with the versions that they have and get. */
  readonly components: readonly {
    readonly name: string
    readonly currentVersion: string
    readonly newVersion: string
  }[]
  /** Groups of component configurations that an administrator has to convert before. */
  readonly manual: readonly string[]
}

interface Printed {
  readonly kind?: string
  readonly availableUpgrades?: readonly { readonly components?: UpgradePlan['components'] | null }[] | null
  readonly configVersions?:
    readonly { readonly group: string; readonly manualUpgradeRequired?: boolean }[] | null
}

/**
 * @param output standard output of the program; lines of its checks may come before the document
 * @returns undefined where it has no plan
 */
export function parseUpgradePlan(output: string): UpgradePlan | undefined {
  const start = /^\{/m.exec(output)?.index
  if (start === undefined) return undefined
  let printed: Printed
  try {
    printed = JSON.parse(output.slice(start)) as Printed
  } catch {
    return undefined
  }
  if (printed.kind !== 'UpgradePlan') return undefined
  return {
    components: (printed.availableUpgrades ?? []).flatMap(({ components }) => components ?? []),
    manual: (printed.configVersions ?? []).flatMap(({ group, manualUpgradeRequired }) =>
      manualUpgradeRequired === true ? [group] : [],
    ),
  }
}
