/** Key of the step that renews the certificates of the control plane. */
export const renewalStep = 'certificates-renew'
