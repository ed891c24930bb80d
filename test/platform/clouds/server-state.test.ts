import { describe, expect, it } from 'vitest'
import { toMachineState } from '../../../src/platform/clouds/openstack/openstack.ts'

const state = (status: string, task = '', fault = '') => toMachineState({ status, task, fault })

describe('the state of a server as one of a machine', () => {
  it.each([
    // The rows of the table in docs/platform.md, in its order.
    ['BUILD', '', 'Pending'],
    ['BUILD', 'scheduling', 'Pending'],
    ['BUILD', 'networking', 'Provisioning'],
    ['BUILD', 'block_device_mapping', 'Provisioning'],
    ['BUILD', 'spawning', 'Provisioning'],
    ['ACTIVE', '', 'Running'],
    ['ACTIVE', 'powering-off', 'Running'],
    ['SHUTOFF', '', 'Provisioned'],
    ['SHUTOFF', 'powering-on', 'Provisioned'],
    ['PAUSED', '', 'Provisioned'],
    ['SUSPENDED', '', 'Provisioned'],
    ['SHELVED', '', 'Provisioned'],
    ['SHELVED_OFFLOADED', '', 'Provisioned'],
    ['ACTIVE', 'deleting', 'Deleting'],
    ['ERROR', 'deleting', 'Deleting'],
    ['BUILD', 'deleting', 'Deleting'],
    ['SHUTOFF', 'soft-deleting', 'Deleting'],
    ['SOFT_DELETED', '', 'Deleting'],
    ['DELETED', '', 'Deleted'],
    ['UNKNOWN', '', 'Unknown'],
    ['', '', 'Unknown'],
    ['A_STATE_OF_LATER', '', 'Unknown'],
    ['constructor', '', 'Unknown'],
  ])('%s with the task "%s" is %s', (status, task, instanceState) => {
    expect(state(status, task)).toEqual({ instanceState, conditions: [] })
  })

  it.each([
    ['REBOOT', 'reboot_started'],
    ['HARD_REBOOT', 'rebooting_hard'],
    ['RESIZE', 'resize_prep'],
    ['VERIFY_RESIZE', ''],
    ['REVERT_RESIZE', 'resize_reverting'],
    ['MIGRATING', 'migrating'],
    ['PASSWORD', 'updating_password'],
    ['REBUILD', 'rebuilding'],
    ['RESCUE', ''],
  ])('%s with the task "%s" is Running, in maintenance', (status, task) => {
    expect(state(status, task)).toEqual({
      ...{ instanceState: 'Running', conditions: [] },
      maintenanceStatus: {
        action: status,
        state: task,
        message: expect.stringMatching(/^The .*server .*\.$/) as string,
      },
    })
  })

  it('ERROR is Failed, and a condition says why', () => {
    expect(state('ERROR', '', 'No valid host was found.')).toEqual({
      instanceState: 'Failed',
      conditions: [
        { type: 'Failed', status: 'True', reason: 'ServerError', message: 'No valid host was found.' },
      ],
    })
  })
})
