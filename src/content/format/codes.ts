import { defineErrors } from '../../errors/define-errors.ts'

/** Refusals of bundles: docs/bundle-format.md. */
export const bundleErrors = defineErrors({
  BundleInvalid: {
    status: 400,
    meaning:
      'A part of the bundle breaks a rule; details.place names the file or blob and the field, details.reason the rule.',
    action:
      'Correct the named part and build the bundle again, for example with edgehostctl content build; docs/bundle-format.md explains the rules.',
  },
  BundleIncomplete: {
    status: 400,
    meaning:
      'The bundle lacks blobs that it needs; details.missing lists the first of them, details.missingCount says how many there are.',
    action:
      'Pull the images again with all their layers and build the bundle again; edgehostctl content inspect FILE checks it on any machine.',
  },
  BundleTooLarge: {
    status: 400,
    meaning:
      'The bundle exceeds a limit; details.reason and details.place name it. Layers and files have no limit but the disk.',
    action: 'Split the bundle.',
  },
})
