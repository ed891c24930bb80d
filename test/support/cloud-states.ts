interface Shown {
  readonly metadata: { readonly name: string }
  readonly status: {
    readonly instanceState: string
    readonly maintenanceStatus?: { readonly action: string }
  }
}

/** The states of machines, each with its maintenance, by their names. */
export const statesOf = (machines: readonly Shown[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    machines.map(({ metadata, status }) => [
      metadata.name,
      [status.instanceState, status.maintenanceStatus?.action].filter(Boolean).join(' '),
    ]),
  )

/** Those of the servers that the long test of OpenStack makes and records, by the table of docs/platform.md. */
export const statesOfServers = {
  ...{ running: 'Running', off: 'Provisioned', paused: 'Provisioned', suspended: 'Provisioned' },
  ...{ shelved: 'Provisioned', offloaded: 'Provisioned', verify: 'Running VERIFY_RESIZE' },
  ...{ revert: 'Running REVERT_RESIZE', rescue: 'Running RESCUE', reboot: 'Running REBOOT' },
  ...{ 'hard-reboot': 'Running HARD_REBOOT', resize: 'Running RESIZE', migrating: 'Running MIGRATING' },
  ...{ password: 'Running PASSWORD', rebuild: 'Running REBUILD', deleting: 'Deleting' },
  ...{ 'soft-deleting': 'Deleting', failed: 'Failed', waiting: 'Pending', building: 'Provisioning' },
} as const
